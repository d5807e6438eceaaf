import { posix } from 'node:path'
import type { Sources } from './modules.ts'

const LINK = /\[[^\]]*\]\(([^)\s]+)(?:\s+"[^"]*")?\)|<img[^>]*\ssrc="([^"]+)"/g

/** Links of Markdown pages to files that are not there, or to headings that their page has not. */
export function linkFaults(pages: Sources, files: ReadonlySet<string>): readonly string[] {
  return [...pages].flatMap(([page, text]) =>
    linksOf(text).flatMap(link => {
      const fault = faultOf(link, page, pages, files)
      return fault === undefined ? [] : [`${page}: links to ${link}, ${fault}`]
    }),
  )
}

/** Pages below `docs/` that the nearest README above them does not link to. */
export function indexFaults(pages: Sources): readonly string[] {
  return [...pages.keys()]
    .filter(page => page.startsWith('docs/') && !page.endsWith('/README.md'))
    .flatMap(page => {
      const index = nearestIndex(posix.dirname(page), pages)
      const targets = linksOf(pages.get(index) ?? '').map(link => posix.join(posix.dirname(index), link))
      return targets.includes(page) ? [] : [`${index}: does not list ${page}`]
    })
}

function nearestIndex(folder: string, pages: Sources): string {
  const index = posix.join(folder, 'README.md')
  return pages.has(index) || folder === '.' ? index : nearestIndex(posix.dirname(folder), pages)
}

function linksOf(text: string): readonly string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '')
  return [...prose.matchAll(LINK)].map(([, link, image]) => link ?? image ?? '')
}

function faultOf(link: string, page: string, pages: Sources, files: ReadonlySet<string>): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return undefined
  const [path = '', heading] = link.split('#')
  const target = path === '' ? page : posix.join(posix.dirname(page), decodeURIComponent(path))
  if (!exists(target, files)) return 'which does not exist'
  const text = pages.get(target)
  if (heading === undefined || text === undefined) return undefined
  return anchorsOf(text).has(heading) ? undefined : 'a heading that is not there'
}

function exists(target: string, files: ReadonlySet<string>): boolean {
  const folder = `${target.replace(/\/$/, '')}/`
  return files.has(target) || [...files].some(file => file.startsWith(folder))
}

/** Heading anchors as GitHub makes them. */
function anchorsOf(text: string): ReadonlySet<string> {
  return new Set(
    [...text.matchAll(/^#{1,6}\s+(.+)$/gm)].map(([, heading = '']) =>
      heading
        .trim()
        .toLowerCase()
        .replace(/[^\p{Letter}\p{Number}\s_-]/gu, '')
        .replace(/\s/g, '-'),
    ),
  )
}
