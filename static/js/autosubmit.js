// A filter form sends itself when a choice in it changes; without scripts its button does.
document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form?.matches("[data-autosubmit]") && event.target.matches("select, [type=checkbox]")) {
    form.requestSubmit();
  }
});
