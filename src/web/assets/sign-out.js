// After a sign-out in another tab, or when the sign-in has ended, the portal no longer shows patients. The pages work without this
// script.
const POLL_MS = 20_000
const channel = new BroadcastChannel('sallyport-sign-out')

function leave() {
  document.documentElement.hidden = true
  // The sign-in page remembers this one. The page of a refused form has no query.
  location.replace(`/portal${location.search}`)
}

// Asks for a page without patients. The header says that this is no use of the sign-in.
async function check() {
  try {
    const options = { method: 'HEAD', cache: 'no-store', headers: { 'X-Requested-With': 'fetch' } }
    const { redirected, url } = await fetch('/account', options)
    if (redirected && new URL(url).pathname === '/login') leave()
  } catch {
    // The server is unreachable: the next check finds out.
  }
}

if (location.pathname.startsWith('/portal')) {
  channel.addEventListener('message', leave)
  document.addEventListener('visibilitychange', check)
  addEventListener('focus', check)
  setInterval(check, POLL_MS)
} else channel.postMessage('signed out')
