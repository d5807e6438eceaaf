// Closes a page of a user when the sign-in has ended: by a sign-out in another tab, by an administrator, or by inactivity, of
// which it warns before. The server decides when that is, and to ask it is no use of the sign-in. Whoever types or moves the
// pointer uses it, in any tab. The pages work without this script.
import { reportUse } from './in-use.js'

const POLL_MS = 20_000
/** While the warning is open. */
const SHORT_POLL_MS = 2_000

let end = { secondsLeft: Number.POSITIVE_INFINITY, warnSeconds: 0, reportSeconds: 30, canStay: false }
let endsAt = Number.POSITIVE_INFINITY
let askedAt = 0
let isDismissed = false
const title = document.title
const dialog = makeDialog()
const channel = new BroadcastChannel('sallyport-sign-in')

// The sign-in page remembers it. A page that a form of the portal, the picker or the consent page opened has no query.
function findPage() {
  if (location.pathname.startsWith('/portal')) return `/portal${location.search}`
  const interaction = document.querySelector('input[name="interaction"]')
  return interaction ? `${location.pathname}?interaction=${interaction.value}` : location.href
}

function leave() {
  document.documentElement.hidden = true
  location.replace(findPage())
}

/** Asks when the sign-in ends, or reports that it was in use some seconds ago. */
async function ask(idleSeconds) {
  askedAt = Date.now()
  const used = { method: 'POST', body: new URLSearchParams({ idleSeconds }) }
  try {
    // The header says that this is no page that the user opens.
    const options = { cache: 'no-store', headers: { 'X-Requested-With': 'fetch' } }
    const response = await fetch(
      '/login/state',
      idleSeconds === undefined ? options : { ...options, ...used },
    )
    if (response.ok) take(await response.json())
  } catch {
    // The server is unreachable: the next question finds out.
  }
}

function take(state) {
  if (!state.signedIn) return leave()
  end = state
  endsAt = Date.now() + state.secondsLeft * 1000
  document.documentElement.hidden = false
  if (!isSoon()) close()
  else if (!dialog.open && !isDismissed) open()
  showTime()
}

function isSoon() {
  return Date.now() >= endsAt - end.warnSeconds * 1000
}

function open() {
  dialog.querySelector('h2').textContent = end.canStay ? 'Are you still there?' : 'Your sign-in ends soon'
  dialog.querySelector('[data-why]').textContent = end.canStay
    ? 'You have not used this page for a while.'
    : 'Every sign-in ends after 8 hours.'
  dialog.querySelector('[data-stay]').textContent = end.canStay ? 'Stay signed in' : 'Close'
  showTime()
  dialog.showModal()
  dialog.querySelector('[data-stay]').focus()
}

function close() {
  isDismissed = false
  if (dialog.open) dialog.close()
  document.title = title
}

function stay() {
  if (!end.canStay) {
    close()
    isDismissed = true
    return
  }
  ask(0).then(() => channel.postMessage('used'))
}

function showTime() {
  if (!dialog.open) return
  const left = Math.max(0, Math.ceil((endsAt - Date.now()) / 1000))
  dialog.querySelector('[role="timer"]').textContent = `${left} second${left === 1 ? '' : 's'}`
  document.title = `Sign-out in ${left} s – ${title}`
}

function tick() {
  showTime()
  // Until the server answers, nobody knows whether the page may still be shown.
  const isOver = Date.now() >= endsAt
  if (isOver) document.documentElement.hidden = true
  const isShort = isOver || dialog.open || (isSoon() && !isDismissed)
  if (Date.now() - askedAt >= (isShort ? SHORT_POLL_MS : POLL_MS)) ask()
}

function look() {
  if (Date.now() >= endsAt) document.documentElement.hidden = true
  ask()
}

function makeDialog() {
  const made = document.createElement('dialog')
  made.className = 'ask'
  made.setAttribute('role', 'alertdialog')
  made.setAttribute('aria-labelledby', 'sign-out-title')
  made.setAttribute('aria-describedby', 'sign-out-text')
  made.innerHTML = `<h2 id="sign-out-title"></h2>
<div id="sign-out-text"><p><span data-why></span> You will be signed out in <b role="timer"></b>.</p>
<p class="muted small">Records that are open in other apps may stay open there. Close them before you leave this computer.</p></div>
<div class="actions"><button type="button" class="btn" data-stay></button><form method="post" action="/logout"><button class="btn btn--quiet">Sign out now</button></form></div>`
  made.querySelector('[data-stay]').addEventListener('click', stay)
  // The key Escape.
  made.addEventListener('cancel', event => {
    event.preventDefault()
    stay()
  })
  document.body.append(made)
  return made
}

new BroadcastChannel('sallyport-sign-out').addEventListener('message', leave)
channel.addEventListener('message', () => ask())
document.addEventListener('visibilitychange', look)
addEventListener('focus', look)
reportUse({
  getEveryMs: () => end.reportSeconds * 1000,
  // The open warning asks for an answer.
  report: idleSeconds => {
    if (!dialog.open) ask(idleSeconds)
  },
})
setInterval(tick, 1000)
ask()
