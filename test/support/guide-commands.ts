import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

/** Pages that users follow. Decisions and internal pages are for developers. */
const PAGES = [
  'README.md',
  'docs/*.md',
  'docs/how-to/*.md',
  'docs/tutorials/*.md',
  'deploy/helm/sallyport/README.md',
]

/** A command that a page prints. */
export interface PrintedCommand {
  readonly line: string
  /** The status that the comment behind a request names. */
  readonly status?: string
}

/** The blocks of commands of each page, in its order. */
export function readGuides(): ReadonlyMap<string, readonly (readonly PrintedCommand[])[]> {
  const pages = globSync(PAGES, { cwd: ROOT }).sort()
  return new Map(pages.map(page => [page, readBlocks(readFileSync(join(ROOT, page), 'utf8'))]))
}

function readBlocks(text: string): readonly (readonly PrintedCommand[])[] {
  return [...text.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(([, body = '']) =>
    body
      .replace(/\\\n\s*/g, '')
      .split('\n')
      .map(line => line.trim())
      .filter(line => line !== '' && !line.startsWith('#'))
      .map(readCommand),
  )
}

function readCommand(line: string): PrintedCommand {
  const [, status] = /\s# (\d{3})\b/.exec(line) ?? []
  return { line: line.replace(/\s+# .*$/, ''), ...(status && { status }) }
}

/** Whether a line only sets a variable, as in a file of settings. */
export function isSetting(line: string): boolean {
  return /^(SMART|OTEL|NODE|XDG)_\w+=('[^']*'|"[^"]*"|\S*)$/.test(line)
}
