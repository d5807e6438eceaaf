// Checks the form of an app while it is filled in, by the rules of the server. Without this script, the server checks it when
// it is sent.

const WAIT_MS = 300

const form = document.querySelector('form[data-check]')
const touched = new Set()
let timer
let asked = 0

for (const event of ['input', 'change'])
  form.addEventListener(event, ({ target }) => {
    touched.add(target.name)
    clearTimeout(timer)
    timer = setTimeout(check, WAIT_MS)
  })

async function check() {
  const mine = ++asked
  const body = new URLSearchParams(new FormData(form))
  const response = await fetch(form.dataset.check, { method: 'POST', body })
  if (mine !== asked || !response.ok || response.redirected) return
  const { faults } = await response.json()
  if (mine !== asked) return
  for (const name of touched) show(name, faults[name])
}

function show(name, fault) {
  const field = document.getElementById(name)
  if (!field) return
  const id = `${name}-error`
  const shown = document.getElementById(id)
  if (fault === undefined) shown?.remove()
  else {
    const text = shown ?? document.createElement('p')
    text.id = id
    text.className = 'field__error'
    text.setAttribute('role', 'status')
    if (!shown) field.after(text)
    if (text.textContent !== fault) text.textContent = fault
  }
  if (fault === undefined) field.removeAttribute('aria-invalid')
  else field.setAttribute('aria-invalid', 'true')
  const others = (field.getAttribute('aria-describedby') ?? '').split(' ').filter(one => one !== id)
  field.setAttribute('aria-describedby', [...others, ...(fault === undefined ? [] : [id])].join(' ').trim())
}
