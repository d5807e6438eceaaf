import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/** Links and images of the website that lead to a file or an anchor that does not exist. */
export function findLinkFaults(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.html'),
  )
  const anchors = new Map(files.map(name => [resolve(folder, name), readAnchors(join(folder, name))]))
  return [...anchors].flatMap(([path, { links }]) =>
    links.flatMap(link => {
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : resolve(dirname(path), decodeURIComponent(file))
      const isThere = existsSync(target) && (!anchor || anchors.get(target)?.ids.has(anchor))
      return isThere ? [] : [`${relative(folder, path)}: ${link} leads nowhere`]
    }),
  )
}

function readAnchors(path: string): { readonly ids: ReadonlySet<string>; readonly links: readonly string[] } {
  const text = readFileSync(path, 'utf8')
  return {
    ids: new Set([...text.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id)),
    links: [...text.matchAll(/\s(?:href|src)="([^"]+)"/g)]
      .map(([, link = '']) => link.replaceAll('&amp;', '&'))
      .filter(link => !/^[a-z][a-z0-9+.-]*:/i.test(link)),
  }
}
