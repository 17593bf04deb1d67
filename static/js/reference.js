// Draws the OpenAPI document, as it is served here: nothing is fetched from elsewhere, and no key is kept.
const reference = document.getElementById("reference");
SwaggerUIBundle({
  url: reference.dataset.document,
  domNode: reference,
  deepLinking: true,
  validatorUrl: null,
  onComplete: () => document.body.setAttribute("data-drawn", ""),
});
