import { posix } from 'node:path'

/** The page that greets visitors. */
export const HOME = 'docs/README.md'

/** The file of a Markdown page, or of decision vectors, on the website. */
export function nameOutput(source: string): string {
  if (source === HOME) return 'index.html'
  if (source === 'README.md') return 'readme.html'
  return source.replace(/README\.md$/, 'index.html').replace(/\.(?:md|json)$/, '.html')
}

/** The relative link from one file of the website to another: the website works in any folder of a server. */
export function linkTo(from: string, to: string): string {
  return posix.relative(posix.dirname(from), to)
}
