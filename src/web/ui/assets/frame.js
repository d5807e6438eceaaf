// Sign-in pages are never shown in a frame. This script opens them in a window. That window ends at the callback of the
// launch, which belongs to the frame: the window passes it on, and the frame completes the launch with its own cookie.

const link = document.querySelector('#open-window')

link?.addEventListener('click', event => {
  const popup = open(link.dataset.authorizationUrl, 'sallyport-sign-in', 'popup,width=560,height=760')
  // If the browser blocks the window, it follows the link, and the app opens in a new tab.
  if (!popup) return
  event.preventDefault()
  addEventListener('message', ({ origin, source, data }) => {
    if (origin === location.origin && source === popup && typeof data?.search === 'string')
      location.replace(`/callback${data.search}`)
  })
})

if (document.querySelector('#return-to-frame') && window.opener) {
  window.opener.postMessage({ search: location.search }, location.origin)
  window.close()
}
