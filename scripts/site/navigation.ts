import { posix } from 'node:path'
import { HOME, nameOutput } from './paths.ts'

export interface NavigationGroup {
  readonly title: string
  readonly links: readonly { readonly title: string; readonly path: string }[]
}

const ROW = /^\| \[([^\]]+)\]\(([^)#]+)\)/gm

/** The headings of docs/README.md, each with the pages in the first column of its table. */
export function readNavigation(index: string): readonly NavigationGroup[] {
  return index
    .split(/^## /m)
    .slice(1)
    .map(section => ({
      title: section.slice(0, section.indexOf('\n')),
      links: [...section.matchAll(ROW)].map(([, title = '', file = '']) => ({
        title,
        path: nameOutput(posix.join(posix.dirname(HOME), file)),
      })),
    }))
    .filter(({ links }) => links.length > 0)
}
