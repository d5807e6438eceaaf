import { posix } from 'node:path'
import type { Sources } from './modules.ts'

const LINK = /\[[^\]]*\]\(([^)\s]+)(?:\s+"[^"]*")?\)|<img[^>]*\ssrc="([^"]+)"/g

/** Links in Markdown pages to files or headings that do not exist. */
export function findLinkFaults(pages: Sources, files: ReadonlySet<string>): readonly string[] {
  return [...pages].flatMap(([page, text]) =>
    findLinks(text).flatMap(link => {
      const fault = checkLink(link, page, pages, files)
      return fault === undefined ? [] : [`${page}: links to ${link}, ${fault}`]
    }),
  )
}

/** Pages below `docs/` that the nearest README above them does not link to. */
export function findIndexFaults(pages: Sources): readonly string[] {
  return [...pages.keys()]
    .filter(page => page.startsWith('docs/') && !page.endsWith('/README.md'))
    .flatMap(page => {
      const index = findIndex(posix.dirname(page), pages)
      const targets = findLinks(pages.get(index) ?? '').map(link => posix.join(posix.dirname(index), link))
      return targets.includes(page) ? [] : [`${index}: does not list ${page}`]
    })
}

function findIndex(folder: string, pages: Sources): string {
  const index = posix.join(folder, 'README.md')
  return pages.has(index) || folder === '.' ? index : findIndex(posix.dirname(folder), pages)
}

function findLinks(text: string): readonly string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '')
  return [...prose.matchAll(LINK)].map(([, link, image]) => link ?? image ?? '')
}

function checkLink(
  link: string,
  page: string,
  pages: Sources,
  files: ReadonlySet<string>,
): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return undefined
  const [path = '', heading] = link.split('#')
  const target = path === '' ? page : posix.join(posix.dirname(page), decodeURIComponent(path))
  if (!exists(target, files)) return 'which does not exist'
  const text = pages.get(target)
  if (heading === undefined || text === undefined) return undefined
  return findAnchors(text).has(heading) ? undefined : 'a heading that does not exist'
}

function exists(target: string, files: ReadonlySet<string>): boolean {
  const folder = `${target.replace(/\/$/, '')}/`
  return files.has(target) || [...files].some(file => file.startsWith(folder))
}

/** Heading anchors as GitHub makes them. */
function findAnchors(text: string): ReadonlySet<string> {
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
