// The kinds of chart that the product draws. No ready-made bundle has these without the maps.
var Plotly = require('plotly.js/lib/core');
Plotly.register([
  require('plotly.js/lib/bar'),
  require('plotly.js/lib/box'),
  require('plotly.js/lib/heatmap'),
  require('plotly.js/lib/histogram'),
  require('plotly.js/lib/icicle'),
  require('plotly.js/lib/sankey'),
  require('plotly.js/lib/treemap'),
]);
module.exports = Plotly;
