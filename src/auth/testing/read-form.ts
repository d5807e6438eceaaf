/** The fields of a page's posted form as a browser would send them: hidden ones, and the boxes that are ticked. */
export function readForm(page: string): URLSearchParams {
  const form = new URLSearchParams()
  const markup = /<form[^>]* method="post"[\s\S]*?<\/form>/.exec(page.slice(page.indexOf('<main')))?.[0] ?? ''
  for (const [tag] of markup.matchAll(/<input [^>]*>/g)) {
    const attribute = (name: string) => new RegExp(` ?${name}="([^"]*)"`).exec(tag)?.[1]
    const type = attribute('type')
    const isSent = type === 'hidden' || / checked/.test(tag)
    if (isSent) form.append(attribute('name') ?? '', unescaped(attribute('value') ?? ''))
  }
  return form
}

/** The form with these boxes unticked. */
export function without(form: URLSearchParams, ...unticked: readonly string[]): URLSearchParams {
  const left = new URLSearchParams([...form])
  for (const value of unticked) {
    if (!left.has('scope', value)) throw new Error(`There is no ticked box ${value}`)
    left.delete('scope', value)
  }
  return left
}

function unescaped(text: string): string {
  return text
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}
