// The search box: asks the index that pagefind has made for these pages.
const input = document.getElementById('search')
const list = document.getElementById('found')
const MAX_FOUND = 8

const loading = { index: undefined }
async function load() {
  loading.index ??= import(new URL(input.dataset.index, location.href))
  return loading.index
}

input.addEventListener('focus', load, { once: true })
input.addEventListener('input', async () => {
  const { debouncedSearch } = await load()
  const search = await debouncedSearch(input.value, {}, 150)
  if (search === null) return
  const found = await Promise.all(search.results.slice(0, MAX_FOUND).map(result => result.data()))
  list.replaceChildren(...found.map(format))
  list.hidden = input.value === ''
  if (found.length === 0 && input.value !== '') list.textContent = 'No page contains this.'
})
input.addEventListener('keydown', event => {
  if (event.key === 'Escape') list.hidden = true
})
document.addEventListener('keydown', event => {
  if (event.key !== '/' || event.target !== document.body) return
  event.preventDefault()
  input.focus()
})

function format({ url, meta, excerpt }) {
  const item = document.createElement('li')
  const link = document.createElement('a')
  link.href = url
  link.textContent = meta.title
  const text = document.createElement('p')
  // Pagefind marks the words with <mark> and escapes the rest.
  text.innerHTML = excerpt
  item.append(link, text)
  return item
}
