/**
 * `npm run check:docs`: the settings page and the CLI page are current, links lead somewhere, every error is described, and every rule of
 * docs/spec.md and docs/smart-conformance.md names a test that is there. The endpoints are held against the servers by test/docs.test.ts.
 */
import { errorFaults } from './checks/errors.ts'
import { generatedPages } from './checks/generated.ts'
import { linkFaults } from './checks/links.ts'
import { conclude, listFiles, readSources } from './checks/sources.ts'
import { specFaults } from './checks/spec.ts'

const files = listFiles()
const pages = readSources(files.filter(file => file.endsWith('.md')))
const sources = readSources(files.filter(file => file.endsWith('.ts')))

const generated = await generatedPages()

function ofPage(page: string, judge: (text: string) => readonly string[]): readonly string[] {
  const text = pages.get(page)
  return text === undefined ? [`${page}: does not exist`] : judge(text)
}

conclude('docs', [
  ...linkFaults(pages, new Set(files)),
  ...[...generated].flatMap(([page, expected]) =>
    ofPage(page, text => (text === expected ? [] : [`${page}: not current, run npm run reference`])),
  ),
  ...ofPage('docs/errors.md', text => errorFaults('docs/errors.md', text, sources)),
  ...['docs/spec.md', 'docs/smart-conformance.md'].flatMap(page =>
    ofPage(page, text => specFaults(page, text, sources)),
  ),
])
