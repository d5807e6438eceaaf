/**
 * `npm run check:docs`: the generated pages are current, every link has a target, the indexes list every page, every decision
 * says when to revisit it, and every error and metric is described. A shell and systemd read every setting alike, and the sources have
 * every quoted message, and every function and type that a page for developers names. The changelog has each heading and entry once in a version, and no page has marks of a conflict. Every rule of docs/specification.md has a test, every row of docs/internal/smart-conformance.md names an
 * existing test, every cited rule exists, and no document outside the repository is cited. test/docs.test.ts compares the
 * endpoints with the servers.
 */
import { findAssignmentFaults } from './checks/assignments.ts'
import { findConflictFaults } from './checks/conflicts.ts'
import { findDecisionFaults } from './checks/decisions.ts'
import { findErrorFaults } from './checks/errors.ts'
import { generatePages } from './checks/generated.ts'
import { findHeadingFaults } from './checks/headings.ts'
import { findIdentifierFaults } from './checks/identifiers.ts'
import { findIndexFaults, findLinkFaults } from './checks/links.ts'
import { findMessageFaults } from './checks/messages.ts'
import { findMetricFaults } from './checks/metrics.ts'
import { findPathFaults } from './checks/paths.ts'
import { conclude, listFiles, readSources } from './checks/sources.ts'
import {
  findCitationFaults,
  findOutsideFaults,
  findRowFaults,
  findRuleFaults,
} from './checks/specification.ts'

const files = listFiles()
const pages = readSources(files.filter(file => file.endsWith('.md')))
const sources = readSources(files.filter(file => file.endsWith('.ts')))

const generated = await generatePages(new Map([...sources, ...pages]))

function checkPage(page: string, check: (text: string) => readonly string[]): readonly string[] {
  const text = pages.get(page)
  return text === undefined ? [`${page}: does not exist`] : check(text)
}

conclude('docs', [
  ...findConflictFaults(pages),
  ...findOutsideFaults(new Map([...sources, ...pages]), files),
  ...findLinkFaults(pages, new Set(files)),
  ...findIndexFaults(pages),
  ...findDecisionFaults(pages),
  ...findPathFaults(pages, files),
  ...findIdentifierFaults(pages, sources),
  ...findAssignmentFaults(pages),
  ...findMessageFaults(pages, sources),
  ...[...generated].flatMap(([page, expected]) =>
    checkPage(page, text => (text === expected ? [] : [`${page}: not current, run npm run reference`])),
  ),
  ...checkPage('CHANGELOG.md', text => findHeadingFaults('CHANGELOG.md', text)),
  ...checkPage('docs/metrics.md', text => findMetricFaults('docs/metrics.md', text, sources)),
  ...checkPage('docs/errors.md', text => findErrorFaults('docs/errors.md', text, sources)),
  ...checkPage('docs/specification.md', text => [
    ...findRuleFaults('docs/specification.md', text, sources),
    ...findCitationFaults(text, new Map([...sources, ...pages])),
  ]),
  ...checkPage('docs/internal/smart-conformance.md', text =>
    findRowFaults('docs/internal/smart-conformance.md', text, sources),
  ),
])
