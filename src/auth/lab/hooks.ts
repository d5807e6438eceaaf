import { fill } from '../../core/index.ts'
import type { Claims } from '../../jwt/index.ts'
import { readDetails } from '../base/audit.ts'
import { type AuthRefusal, refuse } from '../base/refusal.ts'
import type { AuthContext } from '../oauth/context.ts'
import type { Extension, Hooks } from '../oauth/hooks.ts'
import { findLoginByHash, type Login } from '../users/find-login.ts'
import type { RefusalCode } from '../words/reason.ts'
import { OAUTH_REASONS } from '../words/reasons.ts'
import { findOldOrigin, findOldSimulation } from './old-texts.ts'
import { describeSimulation, type LabSettings, type LabSimulation } from './settings.ts'

type HookContext = Pick<AuthContext, 'store' | 'rules' | 'clock'>

/** Applies the settings of a lab launch to the launch and its grant (LAB-3), and simulates errors (LAB-6). */
export function createLabHooks(context: HookContext): Hooks {
  return {
    readExtension: data => makeExtension(context, JSON.parse(data)),
    explainRecord: record => explainSimulation(findSimulation(record)),
    nameOrigin(record) {
      const origin = readDetails(record.details).origin ?? findOldOrigin(record)
      if (origin === 'command') return 'Command line'
      return origin === 'lab' ? 'Lab launch' : undefined
    },
  }
}

function makeExtension(context: HookContext, { loginHash, simulate, ...settings }: LabSettings): Extension {
  return {
    ...settings,
    ...(loginHash !== undefined && {
      findLogin: (arrivedAt: number) => findFreshLogin(context, loginHash, arrivedAt),
    }),
    ...(simulate !== undefined && makeSimulation(simulate)),
  }
}

/** As if its user had just signed in. */
async function findFreshLogin(
  context: HookContext,
  loginHash: string,
  arrivedAt: number,
): Promise<Login | undefined> {
  const login = await findLoginByHash(context.store.db, context, loginHash)
  return login && { ...login, createdAt: arrivedAt, authTime: arrivedAt }
}

function makeSimulation(simulate: LabSimulation): Extension {
  return {
    reason: describeSimulation(simulate),
    mark: simulate,
    refuse: endpoint => simulateRefusal(simulate, endpoint),
    changeClaims: claims => changeClaims(simulate, claims),
    async changeToken(token, event) {
      if (simulate === 'token:slow' && event === 'token')
        await new Promise(resolve => setTimeout(resolve, SLOW_MS))
      return simulate === 'access-token:bad-signature' ? breakSignature(token) : token
    },
  }
}

/** The time that a simulated slow response takes. */
const SLOW_MS = 5_000

/** The text marks the event in the audit trail. */
function simulateRefusal(simulate: LabSimulation, endpoint: string): AuthRefusal | undefined {
  const [at, error] = simulate.split(':')
  if (at !== endpoint || error === undefined || error === 'slow') return undefined
  const code = error === '500' ? 'server_error' : (error as RefusalCode)
  return refuse('simulated', { simulation: simulate }).withError(code)
}

/** The FHIR server fails as the token says. */
function changeClaims(simulate: LabSimulation, claims: Claims): Claims {
  const { iat, exp } = claims
  const isExpired = simulate === 'access-token:expired' && typeof iat === 'number' && typeof exp === 'number'
  const past = isExpired ? 2 * (exp - iat) + 60 : 0
  return {
    ...claims,
    ...(isExpired && { iat: iat - past, exp: exp - past }),
    ...(/^(fhir|access-token):/.test(simulate) && { simulate }),
  }
}

function breakSignature(token: string): string {
  const at = token.lastIndexOf('.') + 1
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`
}

function findSimulation(record: Parameters<Hooks['explainRecord']>[0]): string | undefined {
  const { mark, reason, facts } = readDetails(record.details)
  if (reason === 'simulated') return String(facts?.simulation)
  return mark ?? findOldSimulation(record)
}

function explainSimulation(simulation: string | undefined): ReturnType<Hooks['explainRecord']> {
  if (simulation === undefined) return undefined
  const { cause, remedy } = OAUTH_REASONS.simulated
  return {
    badge: 'Simulated',
    details: `Simulated: ${simulation}`,
    cause: fill(cause, { simulation }),
    action: remedy,
  }
}
