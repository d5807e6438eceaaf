// Updates the activity page every two seconds. Without this script, the page has a Refresh link.

const EVERY_MS = 2000
const PAUSE =
  '<svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.75" aria-hidden="true"><path d="M5.5 3.5v9M10.5 3.5v9"/></svg>'

const root = document.querySelector('#activity')
const live = document.querySelector('.live')

if (root && live && root.dataset.live === 'on') {
  let running = true
  let timer

  const label = live.querySelector('span')
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'btn btn--quiet btn--small'
  button.addEventListener('click', () => {
    running = !running
    show()
    if (running) ask()
    else clearTimeout(timer)
  })
  live.querySelector('a').replaceWith(button)
  show()
  timer = setTimeout(ask, EVERY_MS)

  function show(text = running ? 'Live, last hour' : 'Paused') {
    label.textContent = text
    button.innerHTML = running ? `${PAUSE}Pause` : 'Resume'
    live.classList.toggle('live--still', !running)
  }

  async function ask() {
    clearTimeout(timer)
    try {
      // The header marks a request without user interaction: an open page must not extend the login.
      const headers = { Accept: 'text/html', 'X-Requested-With': 'fetch' }
      const response = await fetch(location.href, { headers })
      // The user signed out or lost the permission: show that page.
      if (response.redirected || response.status === 403) return location.reload()
      if (response.ok && running) take(new DOMParser().parseFromString(await response.text(), 'text/html'))
      show()
    } catch {
      show('No response; trying again')
    }
    if (running) timer = setTimeout(ask, EVERY_MS)
  }

  /** Keeps existing launches and events, so that open details, a selection or a screen reader's position are not lost. */
  function take(page) {
    // The links themselves stay: one of them may have the focus.
    const counts = page.querySelectorAll('.tabs .count')
    for (const [at, count] of document.querySelectorAll('.tabs .count').entries())
      if (counts[at]) count.textContent = counts[at].textContent
    const next = page.querySelector('#activity')
    if (!root.querySelector('[data-key]') || !next.querySelector('[data-key]'))
      return root.replaceChildren(...next.childNodes)
    merge(root, next, (launch, newer) => {
      launch.querySelector('.run__facts').replaceWith(newer.querySelector('.run__facts'))
      merge(launch.querySelector('ol'), newer.querySelector('ol'))
    })
  }

  function merge(now, next, update = () => {}) {
    const known = new Map([...now.children].map(one => [one.dataset.key, one]))
    const wanted = [...next.children].map(newer => {
      const one = known.get(newer.dataset.key)
      if (one) update(one, newer)
      return one ?? newer
    })
    const shown = new Set(wanted)
    for (const one of known.values()) if (!shown.has(one)) one.remove()
    for (const [at, one] of wanted.entries())
      if (now.children[at] !== one) now.insertBefore(one, now.children[at] ?? null)
  }
}
