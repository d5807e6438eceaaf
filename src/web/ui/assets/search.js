// The key `/` leads to the search of the page, unless the user is typing. In a list of patients, the results follow what the user
// types, Enter in the search opens the only one that it finds, and the arrow keys move through those that it found. The page
// works without this script.
const field = document.querySelector('#search')
const ENTERED = 'sallyport-search-entered'

/** Links that open a patient, or radio buttons. */
function listFound() {
  return [...document.querySelectorAll('.plist .prow')].map(row => row.querySelector('input') ?? row)
}

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
  const found = listFound()
  const at = found.indexOf(target)
  if (key === 'ArrowDown' && target === field) return found[0]
  if (at === -1 || target.type === 'radio') return undefined
  return { ArrowDown: found[at + 1], ArrowUp: found[at - 1] ?? field, Home: found[0], End: found.at(-1) }[key]
}

/** The only patient that was found. A date that was read in several ways is said above the list, where the user compares it. */
function findOnly() {
  const found = listFound()
  return found.length === 1 && document.querySelector('.pager, .plist__found p') === null
    ? found[0]
    : undefined
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
  const only = findOnly()
  if (only && entered !== null && field.value !== '') open(only)
}

const results = document.querySelector('[data-results]')
if (field && results) followTyping()

/** Shows the results of the same search that the button makes, when the user stops typing for a moment. */
function followTyping() {
  const LETTERS = 2
  /** A name that is typed without a pause is one search, in the audit trail too. */
  const PAUSE_MS = 250
  /** At most three in a second. */
  const GAP_MS = 350
  const first = [...results.childNodes]
  const status = document.createElement('p')
  status.className = 'sr'
  status.setAttribute('role', 'status')
  results.before(status)

  let shown = field.value.trim()
  let askedAt = 0
  let timer
  let running

  field.addEventListener('input', plan)
  field.form.addEventListener('submit', stop)
  // What somebody is about to choose stays where it is.
  results.addEventListener('pointerdown', stop)
  results.addEventListener('focusin', stop)

  function stop() {
    clearTimeout(timer)
    running?.abort()
    results.removeAttribute('aria-busy')
  }

  function plan() {
    stop()
    const text = field.value.trim()
    if (text === shown) return
    if ([...text].length < LETTERS) return show(text, first)
    timer = setTimeout(() => ask(text), Math.max(PAUSE_MS, askedAt + GAP_MS - Date.now()))
  }

  async function ask(text) {
    askedAt = Date.now()
    // A newer question ends this one, whose answer is then not shown.
    const asking = new AbortController()
    running = asking
    results.setAttribute('aria-busy', 'true')
    try {
      // The header marks a request that opens no page.
      const headers = { Accept: 'text/html', 'X-Requested-With': 'fetch' }
      const response = await fetch(buildUrl(), { headers, signal: asking.signal })
      if (response.redirected) return location.reload()
      const page = new DOMParser().parseFromString(await response.text(), 'text/html')
      const found = page.querySelector('[data-results]')
      if (asking.signal.aborted) return
      if (!found) throw new Error('The page has no results')
      show(text, [...found.childNodes])
      // Reload and Back lead to what is shown.
      history.replaceState(history.state, '', buildUrl(readParameter('patient')))
    } catch {
      if (!asking.signal.aborted) tell('The results could not be loaded. Press Search to try again.', false)
    } finally {
      if (running === asking) results.removeAttribute('aria-busy')
    }
  }

  function show(text, nodes) {
    shown = text
    results.replaceChildren(...nodes)
    // The picked patient stays beside the list.
    const picked = readParameter('patient')
    for (const row of results.querySelectorAll('a.prow'))
      if (picked !== null && new URL(row.href).searchParams.get('patient') === picked)
        row.setAttribute('aria-current', 'true')
    tell(results.querySelector('.plist__found h2, .empty h2')?.textContent ?? '', true)
  }

  /** The list has a heading, which screen readers do not read by themselves. */
  function tell(message, isShownElsewhere) {
    status.className = isShownElsewhere ? 'sr' : 'results__status'
    status.textContent = message
  }

  function readParameter(name) {
    return new URLSearchParams(location.search).get(name)
  }

  /** As the form would send it: without a patient, whose record would be read again. */
  function buildUrl(patient = null) {
    const query = new URLSearchParams([...new FormData(field.form)].filter(([, value]) => value !== ''))
    if (patient !== null) query.set('patient', patient)
    return `${field.form.getAttribute('action')}?${query}`
  }
}
