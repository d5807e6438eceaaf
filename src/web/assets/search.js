// The key `/` leads to the search of the page, unless the user is typing. In a list of patients, Enter in the search opens the only
// one that it finds, and the arrow keys move through those that it found. The page works without this script.
const field = document.querySelector('#search')
const ENTERED = 'sallyport-search-entered'
/** A link that opens the patient, or a radio button. */
const found = [...document.querySelectorAll('.plist .prow')].map(row => row.querySelector('input') ?? row)

function isTyping({ target }) {
  return target instanceof Element && target.closest('input, textarea, select, [contenteditable]') !== null
}

function open(only) {
  if (only.href) location.replace(only.href)
  else {
    only.checked = true
    only.focus()
  }
}

// The browser itself moves between radio buttons.
function findNext({ key, target }) {
  const at = found.indexOf(target)
  if (key === 'ArrowDown' && target === field) return found[0]
  if (at === -1 || target.type === 'radio') return undefined
  return { ArrowDown: found[at + 1], ArrowUp: found[at - 1] ?? field, Home: found[0], End: found.at(-1) }[key]
}

if (field) {
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === 'Enter' && event.target === field) sessionStorage.setItem(ENTERED, '1')
    const isSlash = event.key === '/' && !isTyping(event)
    const next = isSlash ? field : findNext(event)
    if (!next) return
    event.preventDefault()
    next.focus()
    if (isSlash) field.select()
  })

  const entered = sessionStorage.getItem(ENTERED)
  sessionStorage.removeItem(ENTERED)
  // A date that was read in several ways is said above the list, where the user compares it.
  const isOnly = found.length === 1 && document.querySelector('.pager, .plist__found p') === null
  if (isOnly && entered !== null && field.value !== '') open(found[0])
}
