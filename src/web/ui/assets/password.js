// A button shows what was typed as a password, until the form is sent. Without scripts there is no button.
for (const button of document.querySelectorAll('[data-shows]')) {
  const field = document.getElementById(button.dataset.shows)
  const show = isShown => {
    field.type = isShown ? 'text' : 'password'
    button.firstElementChild.textContent = isShown ? 'Hide' : 'Show'
  }
  button.hidden = false
  button.addEventListener('click', () => {
    show(field.type === 'password')
    field.focus()
  })
  // Browsers keep the texts of forms, but not passwords.
  field.form.addEventListener('submit', () => show(false))
}
