import type { Transaction } from 'kysely'
import { createRandomToken, type Schema } from '../../../store/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import { lockAccount } from '../accounts.ts'
import type { UsersContext } from '../context.ts'
import { addTotp } from './authenticator-app.ts'
import { FACTOR_KINDS, listFactors } from './factors.ts'
import { METHODS } from './methods.ts'
import { addPasskey, findRelyingParty, verifyNewPasskey } from './passkeys.ts'
import { countRecoveryCodes, replaceRecoveryCodes } from './recovery-codes.ts'
import { createTotpSecret, findTotpStep, isTotpCode } from './totp.ts'

/** What a new second factor is made of. The page keeps it, encrypted for its user. */
export interface Enrolment {
  /** The key of an authenticator app. */
  readonly secret: string
  /** For a passkey. */
  readonly challenge: string
  readonly expiresAt: number
}

type EnrolmentContext = Pick<UsersContext, 'sealer' | 'clock'>

const toPurpose = (userId: string) => `second factor of ${userId}`

export function startEnrolment(
  { sealer, clock }: EnrolmentContext,
  userId: string,
): Enrolment & { readonly sealed: string } {
  const enrolment = {
    secret: createTotpSecret(),
    challenge: createRandomToken(),
    expiresAt: clock() + LIFETIME.interaction,
  }
  return { ...enrolment, sealed: sealer.seal(JSON.stringify(enrolment), toPurpose(userId)) }
}

/** Undefined if it is not of this user, or has expired. */
export function openEnrolment(
  { sealer, clock }: EnrolmentContext,
  userId: string,
  sealed: string,
): Enrolment | undefined {
  const text = sealer.tryOpen(sealed, toPurpose(userId))
  const enrolment: Enrolment | undefined = text === undefined ? undefined : JSON.parse(text)
  return enrolment && enrolment.expiresAt > clock() ? enrolment : undefined
}

/** A second factor that the user has shown to work. */
export interface ProvedFactor {
  readonly kind: keyof typeof FACTOR_KINDS
  /** How the user has authenticated with it. */
  readonly methods: readonly string[]
  /** False if this account or another one has it. */
  store(trx: Transaction<Schema>): Promise<boolean>
}

/** What a form that adds a second factor sends. */
interface EnrolmentAnswer {
  readonly userId: string
  readonly code: string | undefined
  readonly credential: string | undefined
}

/** Checks that a new second factor works. */
export function proveFactor(
  context: EnrolmentContext & Pick<UsersContext, 'settings'>,
  enrolment: Enrolment,
  { userId, code = '', credential }: EnrolmentAnswer,
): ProvedFactor | Fault | Promise<ProvedFactor | Fault> {
  return credential === undefined
    ? proveTotp(context, enrolment, { userId, code })
    : provePasskey(context, enrolment, { userId, credential })
}

/** Checks a new passkey. */
async function provePasskey(
  { settings, clock }: EnrolmentContext & Pick<UsersContext, 'settings'>,
  { challenge }: Enrolment,
  { userId, credential }: Record<'userId' | 'credential', string>,
): Promise<ProvedFactor | Fault> {
  const party = findRelyingParty(settings)
  const passkey = party && (await verifyNewPasskey(party, challenge, credential))
  if (!passkey) return makeFault('passkey-not-verified')
  return {
    kind: 'passkey',
    methods: METHODS.passkey,
    store: trx => addPasskey(trx, { userId, name: FACTOR_KINDS.passkey, passkey, now: clock() }),
  }
}

/** Checks the first code of an authenticator app. */
function proveTotp(
  context: EnrolmentContext,
  enrolment: Enrolment,
  { userId, code }: Record<'userId' | 'code', string>,
): ProvedFactor | Fault {
  const typed = code.replace(/\s/g, '')
  const step = isTotpCode(typed)
    ? findTotpStep(enrolment.secret, typed, { now: context.clock(), lastStep: null })
    : undefined
  if (step === undefined) return makeFault('code-not-current')
  return {
    kind: 'totp',
    methods: METHODS.code,
    store: trx => addTotp(context, trx, { userId, name: FACTOR_KINDS.totp, secret: enrolment.secret, step }),
  }
}

/** Stores a second factor. With the first one, the user gets recovery codes. Locks the account until the transaction ends. */
export async function storeFactor(
  trx: Transaction<Schema>,
  userId: string,
  factor: ProvedFactor,
): Promise<readonly string[] | Fault> {
  await lockAccount(trx, userId)
  if ((await listFactors(trx, userId)).length >= LIMITS.factors)
    return makeFault('factors-too-many', { most: LIMITS.factors })
  if (!(await factor.store(trx)))
    return makeFault('factor-known', { kind: FACTOR_KINDS[factor.kind].toLowerCase() })
  return (await countRecoveryCodes(trx, userId)) > 0 ? [] : replaceRecoveryCodes(trx, userId)
}
