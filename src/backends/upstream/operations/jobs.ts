import { isFailure } from '../../../core/index.ts'
import { failFor, type Params } from '../../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  type FhirResponse,
  getPath,
  type Operation,
} from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'

/** HAPI's parameter with the id of a job. */
const JOB_ID = '_jobId'

/**
 * The status URL of an asynchronous job (R4 async.html) carries the upstream's own parameters sealed, with the client and the
 * user that started the job: another caller may neither follow nor end it.
 */
export function sealJob(
  { baseUrl, pages }: GatewayContext,
  request: FhirRequest<Operation>,
  response: FhirResponse | Failure,
): FhirResponse | Failure {
  const place = isFailure(response) ? undefined : response.headers?.['content-location']
  if (isFailure(response) || place === undefined) return response
  const { pathname, searchParams } = new URL(place)
  const path = pathname.slice(new URL(baseUrl).pathname.length)
  const sealed = pages.seal({ path, params: [...searchParams], cursor: null, grant: describeOwner(request) })
  const headers = {
    ...response.headers,
    'content-location': `${baseUrl}${path}?${pages.parameter}=${sealed}`,
  }
  return { ...response, headers }
}

/** The request with the upstream's own parameters. */
export function openJob(
  { pages }: GatewayContext,
  request: FhirRequest<Operation>,
): FhirRequest<Operation> | Failure {
  const { interaction } = request
  const sealed = findParameter(interaction.params, pages.parameter)
  const isOfJob = interaction.cancels || findParameter(interaction.params, JOB_ID) !== undefined
  if (sealed === undefined) return isOfJob ? failFor('absent-job') : request
  const job = pages.open(sealed)
  if (!job || job.path !== getPath(interaction) || job.grant !== describeOwner(request))
    return failFor('absent-job')
  return { ...request, interaction: { ...interaction, params: job.params } }
}

function findParameter(params: Params, wanted: string): string | undefined {
  return params.find(([name]) => name === wanted)?.[1]
}

function describeOwner({ authenticated: { grant } }: FhirRequest): string {
  return JSON.stringify([grant?.issuer, grant?.clientId, grant?.subject])
}
