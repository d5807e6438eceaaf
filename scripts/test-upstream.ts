/**
 * `npm run test:upstream -- <fhir base>`: the conformance suite with the gateway in front of any FHIR R4 server. It creates
 * resources of its own, each with the tag `urn:sallyport:conformance|<run>`, removes them in the end, and prints a table of
 * the capabilities.
 */

import { after, describe } from 'node:test'
import { client, createAuthenticator, type StartFhir } from '../src/backends/sqlite/testing/fhir.ts'
import { createUnknownPath, findSignOfHapi } from '../src/backends/upstream/index.ts'
import { HAPI_LACKS } from '../src/backends/upstream/testing/hapi/lacks.ts'
import { startRecordedGateway } from '../src/backends/upstream/testing/start-gateway.ts'
import { isRecord } from '../src/core/index.ts'
import { testBackend } from '../src/fhir-api/testing/backend-conformance.ts'
import {
  CAPABILITIES,
  type Capability,
  type TestResult,
  type TestTarget,
} from '../src/fhir-api/testing/target.ts'
import { fullAccess } from '../src/smart/index.ts'
import { testCompleteness } from './test-upstream/completeness.ts'
import { createNamespace, TAG_SYSTEM } from './test-upstream/namespace.ts'
import { testRaces } from './test-upstream/races.ts'
import { removeResources } from './test-upstream/remove-resources.ts'

const [, , upstreamUrl = ''] = process.argv
if (!URL.canParse(upstreamUrl)) {
  process.stderr.write('Cannot test: npm run test:upstream -- <FHIR base URL>\n')
  process.exit(1)
}

const run = `t${Date.now().toString(36)}`
const made = new Set<string>()
const results: TestResult[] = []
let starts = 0

const start: StartFhir = async ({ guard = createAuthenticator({ all: fullAccess }), ...options } = {}) => {
  starts += 1
  const namespace = createNamespace(`${run}s${starts}-`, run, made)
  const { app } = await startRecordedGateway(upstreamUrl, {
    profile: 'auto',
    ...options,
    guard: namespace.guard(guard),
  })
  return client(namespace.wrap(app))
}

describe(`the gateway in front of ${upstreamUrl}`, async () => {
  after(async () => {
    const left = await removeResources(upstreamUrl, run, made)
    process.stdout.write(`\n${formatTable()}\n`)
    if (left.length > 0)
      process.stdout.write(`Cannot remove ${left.length} resources with the tag ${TAG_SYSTEM}|${run}\n`)
  })
  testBackend({
    start,
    lacks: await findLacks(),
    onResult: result => results.push(result),
  })
  testRaces(start)
  testCompleteness(start)
})

async function findLacks(): Promise<NonNullable<TestTarget['lacks']>> {
  const metadata = await fetchJson('/metadata?_elements=software')
  const absent = await fetchJson(createUnknownPath())
  const { body: history } = await fetchJson('/Condition/_history?_count=1')
  const versions = isRecord(history) ? Number(history.total) : 0
  const lacks = {
    ...(metadata.status !== 200 && { metadata: `the upstream answers ${metadata.status}` }),
    // The gateway reads the history of a type to the end for a limited caller, or refuses it.
    ...(versions > VERSIONS && { history: `there are ${versions} versions of Conditions` }),
  }
  if ([metadata, absent].some(it => findSignOfHapi(it))) return { ...HAPI_LACKS, ...lacks }
  return /"Sallyport"/.test(JSON.stringify(metadata.body))
    ? lacks
    : { ...lacks, 'dangling-references': 'the gateway does not know whether they are stored' }
}

/** More cannot be checked in one request (docs/limits.md). */
const VERSIONS = 2_000

async function fetchJson(path: string) {
  const response = await fetch(upstreamUrl + path, { headers: { accept: 'application/fhir+json' } })
  const body: unknown = await response.json().catch(() => undefined)
  return { status: response.status, headers: Object.fromEntries(response.headers), body }
}

/** A test counts for each capability that it needs. */
function formatTable(): string {
  const count = (needs: (result: TestResult) => boolean, name: string, text: string) => {
    const of = results.filter(needs)
    const passed = of.filter(it => it.result === 'passed').length
    const failed = of.filter(it => it.result === 'failed').length
    return `| ${name} | ${passed} | ${failed} | ${text} |`
  }
  return [
    '| capability | passed | failed | |',
    '|---|---|---|---|',
    count(it => it.needs.length === 0, 'basic', 'reads, writes, searches, access'),
    ...(Object.keys(CAPABILITIES) as Capability[])
      .filter(name => results.some(it => it.needs.includes(name) && it.result !== 'not supported'))
      .map(name => count(it => it.needs.includes(name), name, CAPABILITIES[name])),
  ].join('\n')
}
