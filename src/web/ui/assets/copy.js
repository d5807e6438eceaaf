// A button copies the text beside it. Without scripts there is no button: one click selects the text.
function offer() {
  for (const button of document.querySelectorAll('[data-copy][hidden]')) button.hidden = false
}

offer()
// Other scripts add buttons.
new MutationObserver(offer).observe(document.body, { childList: true, subtree: true })

document.addEventListener('click', async ({ target }) => {
  const button = target.closest('[data-copy]')
  if (!button) return
  await navigator.clipboard.writeText(button.previousElementSibling.textContent)
  button.textContent = 'Copied'
})
