import { createInterface } from 'node:readline/promises'
import { sql, type Transaction } from 'kysely'
import { FOR_TESTS, type Settings } from '../../config/index.ts'
import { HOW } from '../../core/index.ts'
import { revokeGrantTokens, type Schema } from '../../store/index.ts'
import { type Arguments, type Command, CommandFailure, failMisuse, type Io, isSet } from '../command.ts'
import { requireDeveloperTools } from '../require-developer-tools.ts'
import { Closing } from '../start/parts.ts'
import { loadSamplePatients } from '../start/sample-patients.ts'
import { administer, loadSettings, prepareDataFile, withSealer } from '../with-store.ts'

const dataReset: Command = {
  usage: `
Usage: ${HOW} data reset [--all] [--yes]

Removes all FHIR resources of the embedded server, with their history, and creates the sample patients again. Works while the
servers run. ${FOR_TESTS}

Options:
  --all  also remove all apps, users, sign-ins and sessions, and revoke all tokens; the demo app and the test login are
         created again. Signing keys and the audit trail stay
  --yes  do not ask`,
  async run(args, io) {
    const settings = loadSettings(io)
    checkResettable(settings)
    await confirm(args, io)
    const removesAll = isSet(args, 'all')
    await administer(io, removesAll ? 'data reset --all' : 'data reset', async trx => {
      if (removesAll) await removeRegistered(trx)
    })
    if (removesAll) await makeFirstRows(settings)
    await resetResources(settings, io)
    io.stdout.write('Reset\n')
    return 0
  },
}

function checkResettable(settings: Settings): void {
  requireDeveloperTools(settings, 'reset')
  const { fhir } = settings
  if (fhir.upstreamUrl !== undefined)
    throw new CommandFailure('Cannot reset: SMART_FHIR_UPSTREAM_URL is set, so that server stores the data')
}

async function confirm(args: Arguments, io: Io): Promise<void> {
  if (isSet(args, 'yes')) return
  if (!io.stdin.isTTY) throw failMisuse('Missing --yes: the command removes all FHIR resources')
  io.stderr.write('Remove all FHIR resources? Type yes: ')
  const lines = createInterface({ input: io.stdin })
  const { value } = await lines[Symbol.asyncIterator]().next()
  lines.close()
  if (value !== 'yes') throw new CommandFailure('Not reset')
}

/** Everything that belongs to a client or a clinician; keys and the audit trail stay. */
async function removeRegistered(trx: Transaction<Schema>): Promise<void> {
  const { deleteClient } = await import('../../auth/index.ts')
  const clients = await trx.selectFrom('client').select('client_id').execute()
  for (const { client_id } of clients) await deleteClient(trx, client_id, Date.now())
  // Grants of apps that have many, which are otherwise removed in steps.
  await revokeGrantTokens(trx, sql`1 = 1`, Date.now())
  for (const table of REGISTERED) await trx.deleteFrom(table).execute()
}

const REGISTERED = [
  ...([
    'client',
    'clinician',
    'login_failure',
    'pending_login',
    'pending_sign_in',
    'launch_token',
    'authorization_request',
  ] as const),
  ...(['app_launch', 'app_session'] as const),
] satisfies readonly (keyof Schema)[]

async function makeFirstRows(settings: Settings): Promise<void> {
  const { initialize } = await import('../../auth/index.ts')
  await withSealer(settings, (store, sealer) => initialize({ settings, store, sealer }))
}

async function resetResources(settings: Settings, io: Io): Promise<void> {
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  const dataFile = prepareDataFile(settings)
  const baseUrl = settings.fhirBaseUrl
  {
    using repository = openRepository({ file: dataFile, baseUrl })
    repository.removeAll()
  }
  const order = { dataFile, baseUrl, count: settings.fhir.samplePatients, now: Date.now() }
  await loadSamplePatients(order, new Closing(), line => io.stderr.write(`${line}\n`))
}

export const commands = { 'data reset': dataReset }
