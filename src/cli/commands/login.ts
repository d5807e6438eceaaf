import { ensureSecret, getProviderIssuer, type LoginProvider } from '../../config/index.ts'
import { HOW, isRecord } from '../../core/index.ts'
import { createSealer } from '../../store/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  getOptional,
  type Io,
  isSet,
  printJson,
  readJsonFile,
} from '../command.ts'
import { loadSettings, openConfiguredStore } from '../with-store.ts'

const loginExplain: Command = {
  usage: `
Usage: ${HOW} login explain --claims <file> [--provider <id>] [--json]

Decides as a sign-in does, without signing anyone in: groups, links, mapping, and the Practitioner on the FHIR server, which must
run. The claims are not verified.

Options:
  --claims <file>   JSON object with the claims of an id_token and of the user info, or with the attributes of a directory entry
  --provider <id>   the sign-in provider (default: the provider whose issuer is iss)
  --json            print JSON: allowed, and rows with label and value

Exit code: 0 if the user would be signed in, otherwise 1.`,
  async run(args, io) {
    const settings = loadSettings(io)
    const claims = readClaims(args, io)
    const provider = findProvider(args, settings.login.providers, claims)
    await using store = await openConfiguredStore(settings)
    const { explainSignIn, findSubject } = await import('../../auth/index.ts')
    const subject = findSubject(provider, claims)
    if (subject === undefined) throw new CommandFailure('Cannot explain: the claims have no sub')
    const sealer = createSealer(ensureSecret(settings))
    const { allowed, rows } = await explainSignIn({ settings, store, sealer }, provider, subject, claims)
    if (isSet(args, 'json'))
      printJson(io, { allowed, rows: rows.map(([label, value]) => ({ label, value })) })
    else for (const [label, value] of rows) io.stdout.write(`${label}: ${value}\n`)
    return allowed ? 0 : 1
  },
}

function readClaims(args: Arguments, io: Io): Readonly<Record<string, unknown>> {
  const claims = readJsonFile(args, 'claims', io)
  if (!isRecord(claims)) throw new CommandFailure('Cannot use --claims: expected a JSON object')
  return claims
}

function findProvider(
  args: Arguments,
  providers: readonly LoginProvider[],
  { iss }: Readonly<Record<string, unknown>>,
): LoginProvider {
  const id = getOptional(args, 'provider')
  const found = providers.find(provider =>
    id === undefined ? getProviderIssuer(provider) === iss : provider.id === id,
  )
  if (found) return found
  throw new CommandFailure(
    id === undefined
      ? 'Cannot explain: no sign-in provider has the issuer of the claims; name one with --provider'
      : `Cannot explain: there is no sign-in provider ${id}`,
  )
}

export const commands = { 'login explain': loginExplain }
