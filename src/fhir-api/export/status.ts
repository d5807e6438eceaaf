import { isFailure } from '../../core/index.ts'
import { failFor } from '../../fhir/index.ts'
import type { Context, Handler } from '../context.ts'
import type { ExportJob, ExportPlan } from '../exports.ts'
import type { FhirRequest, Operation } from '../request.ts'
import type { Failure } from '../response.ts'
import { findOwner } from './kick-off.ts'
import { EXPORT_POLL_SECONDS, EXPORT_STATUS_LEASE_MS } from './limits.ts'
import { buildManifest } from './manifest.ts'
import { continuePlan, describeProgress } from './plan.ts'
import { findRelay, showRelayed } from './relay.ts'

/** The job of a request, if its client has started it. That of the upstream is for tokens that may see everything. */
export async function findJob(
  context: Context,
  request: FhirRequest<Operation>,
  id: string | undefined,
): Promise<ExportJob | undefined> {
  const { exports, clock } = context
  const owner = findOwner(request)
  const job = owner && id !== undefined ? await exports?.jobs.find(id, owner, clock()) : undefined
  return job?.order.relayed !== undefined && !findRelay(context, request) ? undefined : job
}

/** The status URL: a GET returns the manifest when it is ready, a DELETE ends the export (Status Request, Delete Request). */
export const showStatus: Handler<'operation'> = async (context, request) => {
  const { interaction } = request
  const id = interaction.params.find(([name]) => name === 'job')?.[1]
  const job = await findJob(context, request, id)
  if (!job) return failFor('export-unknown')
  const { relayed } = job.order
  const relay = relayed === undefined ? undefined : findRelay(context, request)
  if (relay && relayed !== undefined && !interaction.cancels)
    return (await showRelayed(context, relay, job, request, relayed)) ?? failFor('export-unknown')
  if (!interaction.cancels) return respondWithStatus(context, request, job)
  const problem = relayed === undefined ? undefined : await relay?.end(relayed)
  if (problem) return problem
  await context.exports?.jobs.end(job.id)
  return { status: 202 }
}

const respondWithStatus = async (
  context: Context,
  request: FhirRequest<Operation>,
  job: ExportJob,
): ReturnType<Handler<'operation'>> => {
  const { exports, clock } = context
  const page = readPage(request)
  if (page > Math.max(1, job.plan.manifests?.length ?? 0)) return failFor('export-unknown')
  if (!job.plan.next || page > 1) return respondWithManifest(context, request, job, page)
  const early = job.nextPollAt - clock()
  if (early > 0) return failEarly(Math.ceil(early / 1000))
  // However often a client asks, one request at a time works for its export.
  const isClaimed = await exports?.jobs.update(job, job.plan, clock() + EXPORT_STATUS_LEASE_MS)
  if (!isClaimed) return failEarly(EXPORT_POLL_SECONDS)
  const found = await continuePlan(context, request, job)
  const plan = isFailure(found) ? job.plan : found
  const claimed = { ...job, revision: job.revision + 1 }
  const isStored = await exports?.jobs.update(claimed, plan, clock() + EXPORT_POLL_SECONDS * 1000)
  if (isFailure(found)) return found
  const isShown = isStored && (!plan.next || plan.manifests !== undefined)
  return isShown
    ? respondWithManifest(context, request, { ...job, plan }, page)
    : { status: 202, headers: describeWait(job, isStored ? plan : job.plan) }
}

function failEarly(seconds: number): Failure {
  return { ...failFor('export-polled-early'), headers: formatWait(seconds) }
}

/** The number of a manifest of an export whose client takes partial ones. */
function readPage({ interaction: { params } }: FhirRequest<Operation>): number {
  const text = params.find(([name]) => name === 'manifest')?.[1] ?? '1'
  return /^[1-9]\d{0,5}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
}

function describeWait({ order }: ExportJob, plan: ExportPlan) {
  return { 'x-progress': describeProgress(order, plan), ...formatWait(EXPORT_POLL_SECONDS) }
}

function formatWait(seconds: number) {
  return { 'retry-after': String(seconds) }
}

async function respondWithManifest(
  context: Context,
  request: FhirRequest<Operation>,
  job: ExportJob,
  page: number,
) {
  const isComplete = job.plan.next === undefined
  return {
    status: isComplete ? 200 : 202,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      ...(isComplete ? { expires: new Date(job.expiresAt).toUTCString() } : describeWait(job, job.plan)),
    },
    body: JSON.stringify(buildManifest(context, request, job, page)),
  }
}
