// The key `/` leads to the search of the page, unless the user is typing. The page works without this script.
const field = document.querySelector('#search')

function isTyping({ target }) {
  return target instanceof Element && target.closest('input, textarea, select, [contenteditable]') !== null
}

if (field)
  document.addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return
    event.preventDefault()
    field.focus()
    field.select()
  })
