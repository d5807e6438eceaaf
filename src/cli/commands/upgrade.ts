import { type Configuration, readConfiguration, type Settings, SettingsError } from '../../config/index.ts'
import { describeError, HOW } from '../../core/index.ts'
import { inspectDatabase, openStore, parseDatabaseUrl } from '../../store/index.ts'
import { version } from '../../web/ui/index.ts'
import { type Command, isSet } from '../command.ts'
import { getStoreOptions, loadSettings, recordCommand } from '../with-store.ts'

/** How the servers that run now can be replaced by this version. */
type Verdict = 'rolling' | 'stop needed' | 'refused'

const EXIT_CODES = { rolling: 0, 'stop needed': 3, refused: 4 } as const satisfies Record<Verdict, number>

interface Finding {
  readonly verdict: Verdict
  readonly subject: string
  readonly text: string
}

const check: Command = {
  busy: 'Reading the database',
  usage: `
Usage: ${HOW} upgrade check [--json]

Run it with the new version, and the settings and the database of the servers
that run now. It changes nothing, and says how to upgrade:

  rolling       start new servers beside the old ones, then stop the old ones
  stop needed   stop the old servers first
  refused       this version does not start with these settings or database

Exit code: 0 for rolling, 3 for stop needed, 4 for refused.`,
  async run(args, io) {
    const findings = await checkUpgrade(() => readConfiguration(io.env, io.cwd))
    const verdict = chooseWorst(findings)
    if (isSet(args, 'json'))
      io.stdout.write(`${JSON.stringify({ version, verdict, findings }, undefined, 2)}\n`)
    else {
      for (const { subject, text } of findings) io.stdout.write(`${subject}: ${text}\n`)
      io.stdout.write(`Upgrade to ${version}: ${verdict}\n`)
    }
    return EXIT_CODES[verdict]
  },
}

const apply: Command = {
  busy: 'Applying the migrations',
  usage: `
Usage: ${HOW} upgrade apply

Applies the migrations of this version to the database. The start of a server
does the same; run it yourself if the servers use a database user who may not
create tables, or before a rolling upgrade. Back up first.`,
  async run(_args, io) {
    const settings = loadSettings(io)
    const {
      store: inspected,
      isNew,
      pending,
    } = await inspectDatabase(settings.databaseUrl, getStoreOptions(settings))
    await inspected?.close()
    await using store = await openStore(settings.databaseUrl, getStoreOptions(settings))
    if (!isNew && pending.length > 0)
      await store.db.transaction().execute(recordCommand(io, store, 'upgrade apply'))
    const done = pending.map(({ name }) => `Applied ${name}\n`).join('')
    io.stdout.write(isNew ? 'Created the tables\n' : done || 'Nothing to apply\n')
    return 0
  },
}

async function checkUpgrade(read: () => Configuration): Promise<readonly Finding[]> {
  let configuration: Configuration
  try {
    configuration = read()
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    return error.problems.map(text => ({ verdict: 'refused', subject: 'settings', text }))
  }
  const { settings, problems } = configuration
  const refused = problems.map((text): Finding => ({ verdict: 'refused', subject: 'settings', text }))
  return [...refused, await checkDatabase(settings), ...listSingleServers(settings)]
}

async function checkDatabase(settings: Settings): Promise<Finding> {
  const subject = 'database'
  try {
    const { store, isNew, pending, isRolling } = await inspectDatabase(
      settings.databaseUrl,
      getStoreOptions(settings),
    )
    await store?.close()
    const names = pending.map(({ name }) => name).join(', ')
    if (isNew) return { verdict: 'rolling', subject, text: 'there is none yet, the first start creates it' }
    if (pending.length === 0) return { verdict: 'rolling', subject, text: 'no migration is needed' }
    if (isRolling)
      return {
        verdict: 'rolling',
        subject,
        text: `${names} only adds to the database, so the running servers can continue`,
      }
    return { verdict: 'stop needed', subject, text: `the running servers cannot continue after ${names}` }
  } catch (error) {
    return { verdict: 'refused', subject, text: describeError(error) }
  }
}

/** What only one process of a machine can use at a time. */
function listSingleServers({ databaseUrl, fhir }: Settings): readonly Finding[] {
  const stop = (subject: string, text: string): Finding => ({ verdict: 'stop needed', subject, text })
  return [
    ...(parseDatabaseUrl(databaseUrl)?.dialect === 'sqlite'
      ? [stop('SQLite', 'the servers run on one machine, where a restart replaces them')]
      : []),
    ...(fhir.upstreamUrl === undefined
      ? [stop('embedded FHIR server', 'only one process can use its data, and a restart replaces it')]
      : []),
  ]
}

function chooseWorst(findings: readonly Finding[]): Verdict {
  const has = (verdict: Verdict) => findings.some(finding => finding.verdict === verdict)
  if (has('refused')) return 'refused'
  return has('stop needed') ? 'stop needed' : 'rolling'
}

export const commands = { 'upgrade check': check, 'upgrade apply': apply }
