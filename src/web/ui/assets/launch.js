// Ctrl+Enter, or Command+Enter, launches from anywhere beside the patient. The page works without this script.
const button = document.querySelector('.launch__bar button')
const hint = document.querySelector('.launch__key')

if (button && hint) {
  if (/^Mac/.test(navigator.platform)) hint.textContent = '⌘ Enter'
  hint.hidden = false
  button.closest('.portal__picked').addEventListener('keydown', event => {
    const isShortcut = event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.repeat
    // The browser opens a link in another tab.
    if (!isShortcut || event.target.closest('a')) return
    event.preventDefault()
    button.form.requestSubmit(button)
  })
}
