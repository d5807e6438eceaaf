// Submits the form of a page that only passes a request on. Without scripts, its button does the same.
document.querySelector('form[data-submit]')?.requestSubmit()
