/**
 * `npm run docs [folder]`: the documentation as a static website in `site/`. Every Markdown page of the project becomes a page,
 * with the headings of docs/README.md as its navigation, and so do the decision vectors. The specification gets the tests of each
 * rule. Fails for a link that leads nowhere.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { createIndex } from 'pagefind'
import { listFiles, readSources } from './checks/sources.ts'
import { listTests } from './checks/specification.ts'
import { findLinkFaults } from './site/links.ts'
import { readNavigation } from './site/navigation.ts'
import { formatPage } from './site/page.ts'
import { HOME, nameOutput } from './site/paths.ts'
import { renderMarkdown, SPECIFICATION } from './site/render.ts'
import { formatVectorPages } from './site/vectors.ts'

const ROOT = resolve(import.meta.dirname, '..')
const folder = resolve(process.argv[2] ?? join(ROOT, 'site'))

const sources = new Map(listPages().map(path => [path, readFileSync(join(ROOT, path), 'utf8')]))
const navigation = readNavigation(sources.get(HOME) ?? '')
const pages = new Map<string, string>()
for (const [path, written] of sources) {
  const text = path === SPECIFICATION ? listTests(written, readTests()) : written
  const { title, content, headings } = renderMarkdown(text, path, isPage)
  pages.set(nameOutput(path), formatPage({ path: nameOutput(path), title, content, headings, navigation }))
}
for (const { path, title, content } of formatVectorPages())
  pages.set(path, formatPage({ path, title, content, headings: [], navigation }))

rmSync(folder, { recursive: true, force: true })
for (const [path, text] of pages) {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}
cpSync(join(ROOT, 'docs/images'), join(folder, 'docs/images'), { recursive: true })
for (const name of ['sallyport.css', 'icon.svg', 'logo.svg'])
  cpSync(join(ROOT, 'src/web/ui/assets', name), join(folder, 'assets', name))
for (const name of ['site.css', 'search.js', 'page.js'])
  cpSync(join(import.meta.dirname, 'site', name), join(folder, 'assets', name))
await makeSearchIndex()

const faults = findLinkFaults(folder)
for (const fault of faults) console.error(fault)
console.log(`${pages.size} pages in ${folder}`)
if (faults.length > 0) process.exitCode = 1

function isPage(file: string): boolean {
  return sources.has(file) || /^vectors\/[\w-]+\.json$/.test(file)
}

function readTests(): ReadonlyMap<string, string> {
  return readSources(listFiles().filter(file => file.endsWith('.ts')))
}

function listPages(): readonly string[] {
  const below = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.md'))
    .map(name => `docs/${name}`)
  return [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'CHANGELOG.md',
    'vectors/README.md',
    ...below,
  ]
}

async function makeSearchIndex(): Promise<void> {
  const { index, errors } = await createIndex({})
  if (!index) throw new Error(`Cannot index the pages: ${errors.join('; ')}`)
  await index.addDirectory({ path: folder })
  await index.writeFiles({ outputPath: join(folder, 'pagefind') })
}
