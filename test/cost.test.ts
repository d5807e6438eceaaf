/**
 * No single request keeps the event loop busy for more than 200 ms, or takes more than 64 MB beyond its own body
 * (docs/limits.md). Each case grows one dimension of a request to its limit, or far beyond it. The servers run in a
 * process of their own with default settings. Time is CPU time in units of a fixed piece of work that the same
 * process does (test/support/cost-probe.ts), so that a slow or busy machine changes nothing.
 *
 * `TEST_THOROUGH=1 COST_REPORT=1 npm test -- --verbose test/cost.test.ts` prints the cost of each case.
 */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import * as app from './cost/app.ts'
import * as auth from './cost/auth.ts'
import type { Cases, RefusedCases } from './cost/cases.ts'
import * as fhir from './cost/fhir.ts'
import { LIMITED, REFUSED_LIMITED } from './cost/limited.ts'
import { loadResources, loadStore } from './cost/load.ts'
import { RAISED, REFUSED_RAISED, startRaisedGateway } from './cost/raised.ts'
import { listRouteCases } from './cost/routes.ts'
import type { Cost, Measurement } from './support/cost-probe.ts'
import { limitFile } from './support/file-limit.ts'
import {
  type Measured,
  type MeasuredServers,
  startMeasuredGateway,
  startMeasuredServers,
} from './support/measured-servers.ts'
import { IS_THOROUGH } from './support/thorough.ts'

/** The unit takes about 5 ms on the machines that this was written on: 40 units are 200 ms. */
const BUDGET: Cost = { units: 40, memory: 64 * 1024 * 1024 }

/** Other processes, and what earlier requests wrote, only ever add to a measurement: the least counts. */
const ATTEMPTS = 12

/** A quick run measures every fourth case. */
const QUICK_SHARE = 4

const IS_REPORT = process.env.COST_REPORT !== undefined

async function findCost(measure: (measurement: Measurement) => Promise<Cost>): Promise<Cost> {
  // Never less than the truth.
  const roughly = await measure('roughly')
  if (isWithin(roughly, BUDGET) && !IS_REPORT) return roughly
  let { units, memory } = await measure('carefully')
  for (let attempt = 1; attempt < ATTEMPTS && units >= BUDGET.units; attempt++)
    units = Math.min(units, (await measure('carefully')).units)
  for (let attempt = 0; attempt < ATTEMPTS && (memory >= BUDGET.memory || (IS_REPORT && !attempt)); attempt++)
    memory = Math.min(memory, (await measure('collecting')).memory)
  return { units, memory }
}

function isWithin({ units, memory }: Cost, most: Cost): boolean {
  return units < most.units && memory < most.memory
}

/** The text of a response: of a page, an OperationOutcome or a redirect. */
function describeResponse({ status, text, location }: Measured): string {
  return `${status} ${decodeURIComponent(location.replaceAll('+', ' '))} ${text.slice(0, 20_000)}`
}

function isRefused({ status, location }: Measured): boolean {
  return (status >= 400 && status < 500) || /[?&]error=/.test(location)
}

function describeCost(name: string, starting: Promise<MeasuredServers>, groups: readonly Group[]): void {
  describe(`the cost of one request to ${name}`, { concurrency: 1 }, () => {
    let servers: MeasuredServers | undefined
    let cases = 0
    before(async () => {
      servers = await starting
    })
    // A case that hangs is ended. All cases together may take long on a busy machine.
    beforeEach(() => limitFile(import.meta.filename))
    after(() => servers?.end())

    function check(dimension: string, make: Cases[string], verify: (measured: Measured) => void): void {
      if (!IS_THOROUGH && cases++ % QUICK_SHARE > 0) return
      it(`is limited: ${dimension}`, async () => {
        const cost = await findCost(async measurement => {
          assert.ok(servers)
          const { url, isStreamed, ...sent } = await make(servers)
          const measured = await servers.measure(measurement, url, sent)
          verify(measured)
          const own = isStreamed ? 0 : (sent.body?.length ?? 0)
          return { ...measured.cost, memory: measured.cost.memory - own }
        })
        const report = `${cost.units.toFixed(1)} units of CPU time, ${(cost.memory / 2 ** 20).toFixed(0)} MB`
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
  })
}

interface Group {
  readonly accepted?: Cases
  readonly refused?: RefusedCases
  /** Cases that may be answered either way. */
  readonly answered?: Cases
}

const ofModule = ({ ACCEPTED, REFUSED, ANSWERED }: typeof fhir): Group => ({
  accepted: ACCEPTED,
  refused: REFUSED,
  answered: ANSWERED,
})
// First, while the patient has only what was loaded: other cases write large resources.
const LIMITED_GROUP: Group = { accepted: LIMITED, refused: REFUSED_LIMITED }

async function load(starting: Promise<MeasuredServers>): Promise<MeasuredServers> {
  const servers = await starting
  await loadResources(servers)
  await loadStore(servers)
  return servers
}

describeCost('the servers with the embedded FHIR server', load(startMeasuredServers()), [
  LIMITED_GROUP,
  ...[fhir, auth, app].map(ofModule),
  // In a quick run, the cases that were written for a route stand for it.
  ...(IS_THOROUGH ? [{ answered: await listRouteCases() }] : []),
])
// Most of the work on a FHIR request is the same in the gateway.
if (IS_THOROUGH) {
  describeCost('the gateway', load(startMeasuredGateway()), [LIMITED_GROUP, ofModule(fhir)])
  describeCost('the gateway with raised limits', startRaisedGateway(), [
    { accepted: RAISED, refused: REFUSED_RAISED },
  ])
}
