// After a sign-out, the portal in other tabs of this browser no longer shows patients. The pages work without this script.
const channel = new BroadcastChannel('sallyport-sign-out')

if (location.pathname.startsWith('/portal'))
  channel.addEventListener('message', () => {
    document.documentElement.hidden = true
    // The sign-in page remembers this one. The page of a refused form has no query.
    location.replace(`/portal${location.search}`)
  })
else channel.postMessage('signed out')
