// After a sign-out in another tab, or when the sign-in has ended, a page of the user no longer shows patients. The pages work
// without this script.
const POLL_MS = 20_000

function leave() {
  document.documentElement.hidden = true
  location.replace(findPage())
}

// The sign-in page remembers it. A page that a form of the portal, the picker or the consent page opened has no query.
function findPage() {
  if (location.pathname.startsWith('/portal')) return `/portal${location.search}`
  const interaction = document.querySelector('input[name="interaction"]')
  return interaction ? `${location.pathname}?interaction=${interaction.value}` : location.href
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

new BroadcastChannel('sallyport-sign-out').addEventListener('message', leave)
document.addEventListener('visibilitychange', check)
addEventListener('focus', check)
setInterval(check, POLL_MS)
