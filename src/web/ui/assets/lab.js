// The link follows the form: the server makes it, as it does when the form is sent. Without this script, a button sends it.

const WAIT_MS = 150

const form = document.querySelector('form[data-lab]')
let timer
let asked = 0

form.querySelector('[data-plain]').hidden = true
for (const event of ['input', 'change'])
  form.addEventListener(event, ({ target }) => {
    // The text of a search is no setting.
    if (target.name === '') return
    clearTimeout(timer)
    timer = setTimeout(refresh, WAIT_MS)
  })
form.addEventListener('submit', event => {
  event.preventDefault()
  refresh()
})

async function refresh() {
  const mine = ++asked
  const [path] = form.getAttribute('action').split('#')
  const url = `${path}?${new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ''))}`
  const response = await fetch(url, { headers: { Accept: 'text/html' } })
  if (mine !== asked) return
  // The user signed out.
  if (response.redirected) return location.reload()
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  if (mine !== asked) return
  history.replaceState(null, '', url)
  document.querySelector('#link').textContent = page.querySelector('#link')?.textContent
  for (const part of document.querySelectorAll('[data-live]')) {
    const next = page.getElementById(part.id)
    // A part in which the user works stays as it is.
    if (next && !part.contains(document.activeElement) && part.innerHTML !== next.innerHTML)
      part.replaceChildren(...next.childNodes)
  }
}
