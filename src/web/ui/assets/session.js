// Updates the countdown of a page of the demo app, warns before its session ends, and loads the page again when the session, or
// one that it lists, has ended: the server then shows no record. Whoever types or moves the pointer on the page uses the session.
// The page works without this script.
import { reportUse } from './in-use.js'

const REPORT_MS = 30_000
const POLL_MS = 20_000

const root = document.querySelector('#session')
const countdown = document.querySelector('.countdown')
const shown = [...document.querySelectorAll('[data-session-id]')].map(
  ({ dataset }) => `/s/${dataset.sessionId}`,
)
const channel = new BroadcastChannel('sallyport-session')

function reload() {
  document.documentElement.hidden = true
  location.replace(location.pathname)
}

// 401: the session has ended. 409: the browser has lost the cookie of the session.
function isClosed({ status }) {
  return status === 401 || status === 409
}

// A page in the background too must not show a record to which access was removed. The server asks for that without
// reading the record.
async function check() {
  try {
    const answers = await Promise.all(shown.map(path => fetch(path, { method: 'HEAD', cache: 'no-store' })))
    if (answers.some(isClosed)) reload()
  } catch {
    // The app server is unreachable: the next check finds out.
  }
}

function watch(look) {
  channel.addEventListener('message', look)
  document.addEventListener('visibilitychange', look)
  addEventListener('focus', look)
  setInterval(look, POLL_MS)
  // A page that the browser keeps for Back is hidden, and loaded again before it is shown.
  addEventListener('pagehide', () => {
    document.documentElement.hidden = true
  })
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) reload()
  })
}

// Without a session on it, the page says that one has ended. The other tabs look at once.
if (shown.length === 0) channel.postMessage('ended')
else if (!countdown) watch(check)

if (root && countdown) {
  const headers = { 'X-Session-Id': root.dataset.sessionId, Accept: 'application/json' }
  let endsAt = Number(countdown.dataset.endsAt)
  // The clock of this computer may be wrong, so the server sends the remaining time.
  let endsHere = Date.now() + readLeft()

  function readLeft() {
    return Math.max(0, endsAt - Date.now())
  }

  function leftText(ms) {
    if (ms <= 0) return 'Ended'
    const minutes = Math.floor(ms / 60_000)
    if (minutes === 0) return 'Less than a minute left'
    if (minutes < 60) return `${minutes} min left`
    const rest = minutes % 60
    return rest === 0
      ? `${Math.floor(minutes / 60)} h left`
      : `${Math.floor(minutes / 60)} h ${rest} min left`
  }

  function show() {
    const left = endsHere - Date.now()
    const whole = endsAt - Number(countdown.dataset.startedAt)
    const isSoon = left < Number(root.dataset.warningMs)
    const rest = countdown.querySelector('.rest')
    rest.querySelector('animate')?.remove()
    rest.setAttribute('width', String(Math.max(0, Math.min(100, (left / whole) * 100))))
    countdown.querySelector('.countdown__left').textContent = leftText(left)
    countdown.classList.toggle('countdown--soon', isSoon)
    // Activity extends the session only until its maximum time.
    const last = endsAt > Number(root.dataset.lastEndsAt) - 1000
    document.querySelector('#session-soon').hidden = last || !isSoon || left <= 0
    document.querySelector('#session-last').hidden = !last || !isSoon || left <= 0
    if (left <= 0) reload()
  }

  function learn(session) {
    const end = Date.parse(session.expiresAt)
    if (end !== endsAt) {
      const moved = end - endsAt
      countdown.dataset.startedAt = String(Number(countdown.dataset.startedAt) + moved)
      endsAt = end
      // time.js writes the text.
      for (const time of document.querySelectorAll('.countdown time, #session-ends time'))
        time.dateTime = session.expiresAt
    }
    endsHere = Date.now() + session.secondsRemaining * 1000
    show()
  }

  async function poll() {
    try {
      const response = await fetch('/api/session', { headers, cache: 'no-store' })
      if (isClosed(response)) reload()
      else if (response.ok) learn(await response.json())
    } catch {
      // The app server is unreachable: the countdown continues.
    }
  }

  document.querySelector('#session-keep')?.addEventListener('click', async event => {
    event.preventDefault()
    try {
      await fetch('/api/me', { headers, cache: 'no-store' })
      await poll()
    } catch {
      location.reload()
    }
  })
  reportUse({
    getEveryMs: () => Math.min(REPORT_MS, Number(root.dataset.warningMs) / 3),
    report: async idleSeconds => {
      const body = new URLSearchParams({ idleSeconds })
      try {
        await fetch(`/s/${root.dataset.sessionId}/keep-alive`, { method: 'POST', body })
        await poll()
      } catch {
        // The app server is unreachable: the countdown continues.
      }
    },
  })
  // After a sign-out, the check ends the session. Otherwise the server could try to renew its tokens, which would be refused.
  watch(async () => {
    await check()
    await poll()
  })
  setInterval(show, 1000)
  poll()
}
