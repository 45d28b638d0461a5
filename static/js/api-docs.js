const place = document.getElementById("api-docs");
window.SwaggerUIBundle({
  url: place.dataset.schemaUrl,
  domNode: place,
  supportedSubmitMethods: [],
  validatorUrl: null,
});
