// A field for an id becomes a search by name. Without this script, the id is typed, or chosen from a list.
// Roles and keys: ARIA Authoring Practices, combobox with a list.

const WAIT_MS = 150

for (const field of document.querySelectorAll('input[data-find]')) enhance(field)

function enhance(field) {
  const { id } = field
  const box = document.createElement('div')
  box.className = 'pick'
  const search = field.cloneNode()
  for (const name of ['name', 'list', 'data-find', 'data-name']) search.removeAttribute(name)
  search.setAttribute('role', 'combobox')
  search.setAttribute('aria-autocomplete', 'list')
  search.setAttribute('aria-expanded', 'false')
  search.setAttribute('aria-controls', `${id}-found`)
  search.value = field.dataset.name ?? field.value
  const list = document.createElement('ul')
  list.id = `${id}-found`
  list.className = 'pick__list'
  list.setAttribute('role', 'listbox')
  list.setAttribute('aria-label', 'Found')
  list.hidden = true
  field.removeAttribute('id')
  field.type = 'hidden'
  field.replaceWith(box)
  box.append(field, search, list)

  let timer
  let asked = 0
  let active = -1
  let shown = search.value

  search.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(find, WAIT_MS)
  })
  search.addEventListener('click', find)
  search.addEventListener('keydown', event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      if (list.hidden) find()
      else move(active + step)
    } else if (event.key === 'Enter' && !list.hidden) {
      event.preventDefault()
      if (list.children[active]?.dataset.value !== undefined) take(list.children[active])
    } else if (event.key === 'Escape') {
      if (!list.hidden) event.preventDefault()
      close()
    }
  })
  // The list takes the click before the search loses the focus.
  list.addEventListener('mousedown', event => event.preventDefault())
  list.addEventListener('click', ({ target }) => {
    const option = target.closest('[data-value]')
    if (option) take(option)
  })
  search.addEventListener('blur', () => {
    clearTimeout(timer)
    asked += 1
    close()
    if (search.value === shown) return
    if (search.value.trim() === '') choose('', '')
    else if (field.dataset.free !== undefined) choose(search.value.trim(), search.value.trim())
    else search.value = shown
  })

  async function find() {
    const mine = ++asked
    const text = search.value === shown ? '' : search.value
    const response = await fetch(`${field.dataset.find}&${new URLSearchParams({ text })}`)
    if (mine !== asked || !response.ok || response.redirected) return
    const { found } = await response.json()
    if (mine !== asked) return
    list.replaceChildren(...(found.length === 0 ? [renderNone()] : found.map(renderOption)))
    list.hidden = false
    search.setAttribute('aria-expanded', 'true')
    move(text === '' ? -1 : 0)
  }

  function renderOption({ value, name, about }, at) {
    const option = document.createElement('li')
    option.id = `${id}-found-${at}`
    option.className = 'pick__option'
    option.setAttribute('role', 'option')
    option.dataset.value = value
    option.dataset.name = name
    for (const [className, text] of [
      ['pick__name', name],
      ['pick__about', about],
    ]) {
      const part = document.createElement('bdi')
      part.className = className
      part.textContent = text
      option.append(part)
    }
    return option
  }

  function renderNone() {
    const none = document.createElement('li')
    none.className = 'pick__option pick__about'
    none.setAttribute('role', 'option')
    none.setAttribute('aria-disabled', 'true')
    none.textContent = 'None found'
    return none
  }

  function move(to) {
    active = Math.max(-1, Math.min(list.children.length - 1, to))
    for (const [at, option] of [...list.children].entries())
      option.setAttribute('aria-selected', String(at === active))
    const option = list.children[active]
    option?.scrollIntoView({ block: 'nearest' })
    search.setAttribute('aria-activedescendant', option?.id ?? '')
  }

  function take({ dataset }) {
    choose(dataset.value, dataset.name)
    close()
  }

  function choose(value, name) {
    field.value = value
    search.value = name
    shown = name
    field.dispatchEvent(new Event('change', { bubbles: true }))
  }

  function close() {
    list.hidden = true
    search.setAttribute('aria-expanded', 'false')
    search.removeAttribute('aria-activedescendant')
  }
}
