// The secret of an activation link is behind the `#`, which a browser does not send. This sends it in the body of the form, and
// removes it from the address and the history. Without scripts the user pastes the link.
function send() {
  const [, secret] = /^#([\w-]{43})$/.exec(location.hash) ?? []
  if (!secret) return
  history.replaceState(null, '', location.pathname)
  const { activation } = document.forms
  activation.reset()
  activation.elements.link.value = secret
  activation.submit()
}

addEventListener('hashchange', send)
send()
