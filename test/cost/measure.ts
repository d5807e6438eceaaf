/** Measures the cost of requests, and compares it with what one request may cost. */
import assert from 'node:assert/strict'
import { after, before, beforeEach } from 'node:test'
import type { Cost, Measurement } from '../support/cost-probe.ts'
import { limitFile } from '../support/file-limit.ts'
import type { Measured, MeasuredServers } from '../support/measured-servers.ts'
import { IS_THOROUGH } from '../support/thorough.ts'
import type { Cases, RefusedCases } from './cases.ts'
import type * as fhir from './fhir.ts'
import { loadLargeRecord } from './large-record.ts'
import { LIMITED, REFUSED_LIMITED } from './limited.ts'
import { loadResources, loadStore } from './load.ts'

/** The unit takes about 5 ms on the machines that this was written on: 20 units are 100 ms, and 400 are 2 s. */
const BUDGET: Cost = { units: 20, total: 400, memory: 64 * 1024 * 1024 }

/** Other processes, and what earlier requests wrote, only ever add to a measurement: the least counts. */
const ATTEMPTS = 30

/** A quick run measures every fourth case. */
const QUICK_SHARE = 4

const IS_REPORT = process.env.COST_REPORT !== undefined

async function findCost(measure: (measurement: Measurement) => Promise<Cost>): Promise<Cost> {
  // Never less than the truth.
  const roughly = await measure('roughly')
  if (isWithin(roughly, BUDGET) && !IS_REPORT) return roughly
  let { units, total, memory } = await measure('carefully')
  for (let attempt = 1; attempt < ATTEMPTS && (units >= BUDGET.units || total >= BUDGET.total); attempt++) {
    const again = await measure('carefully')
    units = Math.min(units, again.units)
    total = Math.min(total, again.total)
  }
  for (let attempt = 0; attempt < ATTEMPTS && (memory >= BUDGET.memory || (IS_REPORT && !attempt)); attempt++)
    memory = Math.min(memory, (await measure('collecting')).memory)
  return { units, total, memory }
}

function isWithin({ units, total, memory }: Cost, most: Cost): boolean {
  return units < most.units && total < most.total && memory < most.memory
}

/** The text of a response: of a page, an OperationOutcome or a redirect. */
function describeResponse({ status, text, location }: Measured): string {
  return `${status} ${decodeURIComponent(location.replaceAll('+', ' '))} ${text.slice(0, 20_000)}`
}

function isRefused({ status, location }: Measured): boolean {
  return (status >= 400 && status < 500) || /[?&]error=/.test(location)
}

/** Adds a test of each case, inside a suite. The servers start with its first test. */
export function addCases(
  start: () => Promise<MeasuredServers>,
  groups: readonly Group[],
  add: (dimension: string, run: () => Promise<void>) => void,
): void {
  let servers: MeasuredServers | undefined
  let cases = 0
  before(async () => {
    servers = await start()
  })
  // A case that hangs is ended. All cases together may take long on a busy machine.
  beforeEach(() => limitFile(process.argv[1]))
  after(() => servers?.end())

  function check(dimension: string, make: Cases[string], verify: (measured: Measured) => void): void {
    if (!IS_THOROUGH && cases++ % QUICK_SHARE > 0) return
    add(dimension, async () => {
      const cost = await findCost(async measurement => {
        assert.ok(servers)
        const { url, isStreamed, ...sent } = await make(servers)
        const measured = await servers.measure(measurement, url, sent)
        verify(measured)
        const own = isStreamed ? 0 : (sent.body?.length ?? 0)
        return { ...measured.cost, memory: measured.cost.memory - own }
      })
      const report = `${cost.units.toFixed(1)} units of CPU time without a pause, ${cost.total.toFixed(0)} in all, ${(cost.memory / 2 ** 20).toFixed(0)} MB`
      if (IS_REPORT) console.log(`${dimension}: ${report}`)
      assert.ok(isWithin(cost, BUDGET), report)
    })
  }

  for (const { accepted = {}, refused = {}, answered = {} } of groups) {
    for (const [dimension, make] of Object.entries(accepted))
      check(`${dimension}, up to the limit`, make, measured =>
        assert.ok(measured.status < 400 && !isRefused(measured), describeResponse(measured)),
      )
    for (const [dimension, [names, make]] of Object.entries(refused))
      check(`${dimension}, beyond the limit`, make, measured => {
        assert.ok(isRefused(measured), describeResponse(measured))
        assert.match(describeResponse(measured), names)
      })
    for (const [dimension, make] of Object.entries(answered))
      check(dimension, make, measured => assert.ok(measured.status < 500, describeResponse(measured)))
  }
}

type Module = Pick<typeof fhir, 'ACCEPTED' | 'REFUSED' | 'ANSWERED'>

interface Group {
  readonly accepted?: Cases
  readonly refused?: RefusedCases
  /** Cases that may be answered either way. */
  readonly answered?: Cases
}

export const ofModule = ({ ACCEPTED, REFUSED, ANSWERED }: Module): Group => ({
  accepted: ACCEPTED,
  refused: REFUSED,
  answered: ANSWERED,
})
// First, while the patient has only what was loaded: other cases write large resources.
export const LIMITED_GROUP: Group = { accepted: LIMITED, refused: REFUSED_LIMITED }

/**
 * The same on a server with many more resources of others, where a history may be refused: it leaves out more versions than
 * one request may check.
 */
export const LIMITED_ON_LARGE: Group = { answered: LIMITED, refused: REFUSED_LIMITED }

/** Also a patient with very many Observations. */
export async function loadLarge(starting: Promise<MeasuredServers>): Promise<MeasuredServers> {
  const servers = await load(starting)
  loadLargeRecord(servers.fhirFile, servers.storedBaseUrl)
  return servers
}

export async function load(starting: Promise<MeasuredServers>): Promise<MeasuredServers> {
  const servers = await starting
  await loadResources(servers)
  await loadStore(servers)
  return servers
}
