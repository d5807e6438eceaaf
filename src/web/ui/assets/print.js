// A button prints the page. Without scripts there is no button: the menu of the browser prints it.
for (const button of document.querySelectorAll('[data-print]')) {
  button.hidden = false
  button.addEventListener('click', () => print())
}
