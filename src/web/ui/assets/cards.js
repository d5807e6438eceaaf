// Loads the cards of CDS services into the portal page. Without this script, a link leads to their page.
const place = document.querySelector('[data-cards]')
const link = place?.querySelector('p:has(a)')
if (link) {
  const loading = document.createElement('p')
  loading.className = 'muted'
  loading.textContent = 'Loading decision support…'
  link.replaceWith(loading)
  place.setAttribute('aria-busy', 'true')
  try {
    // The header marks a request without user interaction: it must not extend the login.
    const headers = { Accept: 'text/html', 'X-Requested-With': 'fetch' }
    const response = await fetch(place.dataset.cards, { headers })
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const cards = response.ok && !response.redirected && page.querySelector('[data-cards]')
    if (cards) place.replaceChildren(...cards.childNodes)
  } finally {
    if (loading.isConnected) loading.replaceWith(link)
    place.removeAttribute('aria-busy')
  }
  shortenIfNeeded()
  addEventListener('resize', shortenIfNeeded)
  addEventListener('hashchange', shortenIfNeeded)
}

/** Cards that do not fit are shown with their summaries only, and with a link to all. */
function shortenIfNeeded() {
  const { classList } = place.parentElement
  classList.remove('cds-place--short')
  const { scrollHeight, clientHeight } = place.parentElement
  classList.toggle('cds-place--short', scrollHeight > clientHeight)
}
