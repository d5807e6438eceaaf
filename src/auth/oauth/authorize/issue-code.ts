import type { Kysely, Transaction } from 'kysely'
import { type Failed, fail, isFailure } from '../../../core/index.ts'
import { createRandomToken, prepareInsert, type Schema, sha256 } from '../../../store/index.ts'
import { LIFETIME } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import { runTransaction } from '../../base/transaction.ts'
import { chooseAcr } from '../../users/factors/methods.ts'
import type { Login } from '../../users/find-login.ts'
import type { Client } from '../clients/client.ts'
import type { AuthContext } from '../context.ts'
import { areAgentsOff } from '../grants/agents-switch.ts'
import { createGrant } from '../grants/grant.ts'
import { grantScope } from '../grants/grant-scope.ts'
import { consumeLaunchToken } from '../launch/launch-token.ts'
import {
  describeAvailableContext,
  type LaunchContext,
  makeScopeTerms,
  resolveLaunchContext,
} from './authorized-context.ts'
import { applyApproval, listDeclined } from './consent-items.ts'
import type { AuthorizationRequest } from './request.ts'
import { consumePendingAuthorization } from './request.ts'

/** An authorization that is complete: everything that a code is issued for. */
export interface Approval {
  readonly request: AuthorizationRequest
  readonly client: Client
  readonly login: Login
  /** The stored request that ends with the code, if the request was stored. */
  readonly pendingId: string | undefined
  /** The scopes that the user approved; undefined without a consent page. */
  readonly approvedScopes: ReadonlySet<string> | undefined
}

/** The scopes of a code. */
export interface GrantedScopes {
  readonly scope: string
  /** The requested scopes that the app could get. */
  readonly grantable: string
  /** Those, or parts of them, that the user did not allow. */
  readonly declined: readonly string[]
}

/** The login ended or the client changed since the approval was loaded. */
interface OutdatedApproval extends Failed {
  readonly reason: 'approval-outdated'
}

/**
 * Issues the code. One transaction consumes the stored request and the launch token and writes the audit record: of
 * several simultaneous attempts only the first gets a code, and the others change nothing.
 */
export async function issueCode(
  context: AuthContext,
  approval: Approval,
  record: (trx: Transaction<Schema>, scopes: GrantedScopes) => Promise<void>,
): Promise<string | AuthRefusal | OutdatedApproval> {
  return runTransaction(context.store.db, async trx => {
    const issued = await issueInTransaction(trx, context, approval)
    if (isFailure(issued)) return issued
    await record(trx, issued)
    return issued.code
  })
}

async function issueInTransaction(
  trx: Kysely<Schema>,
  context: AuthContext,
  { request, client, login, pendingId, approvedScopes }: Approval,
): Promise<(GrantedScopes & { readonly code: string }) | AuthRefusal | OutdatedApproval> {
  const { settings, clock } = context
  const now = clock()
  if (pendingId !== undefined && !(await consumePendingAuthorization(trx, pendingId)))
    return refuse('request-completed')
  const { launchHash, resource } = request
  const launch = launchHash === undefined ? undefined : await consumeLaunchToken(trx, launchHash, now)
  if (launchHash !== undefined && !launch) return refuse('launch-used')
  const launchContext = resolveLaunchContext(launch, request.picked)
  const available = describeAvailableContext(context, launchContext)
  const grantable = grantScope(request.scope, makeScopeTerms(settings, { client, resource }, available))
  if (resource !== undefined && (await areAgentsOff(trx))) return refuse('agents-off')
  if (grantable === '') return refuse('scope-not-grantable-in-launch')
  const scope = approvedScopes ? applyApproval(grantable, approvedScopes) : grantable
  if (scope === '') return refuse('nothing-approved')
  const grantId = await createGrant(trx, context, {
    ...toGrantContext(launchContext),
    client,
    loginIdHash: login.idHash,
    authTime: login.authTime,
    acr: chooseAcr(login, request.acrValues),
    amr: login.amr,
    scope,
    launchId: request.launchId,
    resource,
    fhirUserId: request.picked?.fhirUserId,
  })
  return grantId === undefined
    ? fail({ reason: 'approval-outdated' })
    : {
        code: await createCode(trx, grantId, request, now),
        scope,
        grantable,
        declined: approvedScopes ? listDeclined(grantable, approvedScopes) : [],
      }
}

function toGrantContext(launchContext: LaunchContext | undefined) {
  return {
    patientId: launchContext?.patientId,
    encounterId: launchContext?.encounterId,
    needPatientBanner: launchContext?.needPatientBanner,
    fromEhr: launchContext?.fromEhr ?? false,
    extraContext: launchContext?.extraContext ?? {},
    extension: launchContext?.extension,
  }
}

async function createCode(
  trx: Kysely<Schema>,
  grantId: string,
  request: AuthorizationRequest,
  now: number,
): Promise<string> {
  const code = createRandomToken()
  await insertCode(trx, {
    code_hash: sha256(code),
    grant_id: grantId,
    redirect_uri: request.redirectUri,
    code_challenge: request.codeChallenge ?? '',
    nonce: request.nonce ?? null,
    expires_at: now + LIFETIME.code,
    used_at: null,
  })
  return code
}

const insertCode = prepareInsert('authorization_code')
