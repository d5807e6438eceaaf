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

  /** Keeps existing rows, so that a text selection or a screen reader's position is not lost. */
  function take(page) {
    // The links themselves stay: one of them may have the focus.
    const counts = page.querySelectorAll('.tabs .count')
    for (const [at, count] of document.querySelectorAll('.tabs .count').entries())
      count.textContent = counts[at].textContent
    const [now, next] = [root.querySelector('tbody'), page.querySelector('#activity tbody')]
    if (!now || !next) {
      root.replaceChildren(...page.querySelector('#activity').childNodes)
      return
    }
    const known = new Map([...now.rows].map(row => [row.dataset.record, row]))
    const rows = [...next.rows].map(row => known.get(row.dataset.record) ?? row)
    const shown = new Set(rows)
    for (const row of [...now.rows]) if (!shown.has(row)) row.remove()
    for (const [at, row] of rows.entries())
      if (now.rows[at] !== row) now.insertBefore(row, now.rows[at] ?? null)
  }
}
