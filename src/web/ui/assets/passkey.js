// Asks the browser for a passkey, and sends it with the form. Without scripts, or in a browser without passkeys, the form
// stays hidden, and the page offers another way.
const form = document.querySelector('form[data-passkey]')
const canAsk = window.PublicKeyCredential?.parseRequestOptionsFromJSON !== undefined

async function ask() {
  const { kind, options } = JSON.parse(form.dataset.passkey)
  const status = form.querySelector('[role=status]')
  status.textContent = ''
  try {
    const credential =
      kind === 'create'
        ? await navigator.credentials.create({
            publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
          })
        : await navigator.credentials.get({
            publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
          })
    form.elements.credential.value = JSON.stringify(credential.toJSON())
    form.submit()
  } catch (error) {
    status.textContent =
      error.name === 'InvalidStateError'
        ? 'This device already has a passkey for your account.'
        : 'No passkey was used. Try again, or use another way.'
  }
}

if (form && canAsk) {
  form.hidden = false
  for (const note of document.querySelectorAll('[data-without-passkey]')) note.hidden = true
  form.addEventListener('submit', event => {
    event.preventDefault()
    ask()
  })
  if (form.dataset.start !== undefined) ask()
}
