// Loads the cards of CDS services into the portal page. Without this script, a link leads to their page.
const place = document.querySelector('[data-cards]')
if (place?.querySelector('a')) {
  place.setAttribute('aria-busy', 'true')
  try {
    // The header marks a request without user interaction: it must not extend the login.
    const headers = { Accept: 'text/html', 'X-Requested-With': 'fetch' }
    const response = await fetch(place.dataset.cards, { headers })
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const cards = response.ok && !response.redirected && page.querySelector('[data-cards]')
    if (cards) place.replaceChildren(...cards.childNodes)
  } finally {
    place.removeAttribute('aria-busy')
  }
}
