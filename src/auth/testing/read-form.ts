/** Reads the fields that a browser would send for a page's form: hidden ones and checked checkboxes. */
export function readForm(page: string, method: 'post' | 'get' = 'post'): URLSearchParams {
  const form = new URLSearchParams()
  const pattern = new RegExp(`<form[^>]* method="${method}"[\\s\\S]*?</form>`)
  const markup = pattern.exec(page.slice(page.indexOf('<main')))?.[0] ?? ''
  for (const [tag] of markup.matchAll(/<input [^>]*>/g)) {
    const attribute = (name: string) => new RegExp(` ?${name}="([^"]*)"`).exec(tag)?.[1]
    const type = attribute('type')
    const isSent = type === 'hidden' || / checked/.test(tag)
    if (isSent) form.append(attribute('name') ?? '', decodeEntities(attribute('value') ?? ''))
  }
  return form
}

/** Returns the form with these checkboxes cleared. */
export function clearScopes(form: URLSearchParams, ...cleared: readonly string[]): URLSearchParams {
  const left = new URLSearchParams([...form])
  for (const value of cleared) {
    if (!left.has('scope', value)) throw new Error(`There is no checked checkbox ${value}`)
    left.delete('scope', value)
  }
  return left
}

function decodeEntities(text: string): string {
  return text
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}
