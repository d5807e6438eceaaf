import { isFailure } from '../../core/index.ts'
import { failFor } from '../../fhir/index.ts'
import type { Context, Handler } from '../context.ts'
import type { ExportJob } from '../exports.ts'
import type { FhirRequest, Operation } from '../request.ts'
import { findOwner } from './kick-off.ts'
import { EXPORT_POLL_SECONDS } from './limits.ts'
import { buildManifest } from './manifest.ts'
import { continuePlan, describeProgress } from './plan.ts'

/** The job of a request, if its client has started it. */
export async function findJob(
  { exports, clock }: Context,
  request: FhirRequest<Operation>,
  id: string | undefined,
): Promise<ExportJob | undefined> {
  const owner = findOwner(request)
  return owner && id !== undefined ? exports?.jobs.find(id, owner, clock()) : undefined
}

/** The status URL: a GET returns the manifest when it is ready, a DELETE ends the export (Status Request, Delete Request). */
export const showStatus: Handler<'operation'> = async (context, request) => {
  const { interaction } = request
  const id = interaction.params.find(([name]) => name === 'job')?.[1]
  const job = await findJob(context, request, id)
  if (!job) return failFor('export-unknown')
  if (!interaction.cancels) return respondWithStatus(context, request, job)
  await context.exports?.jobs.end(job.id)
  return { status: 202 }
}

const respondWithStatus = async (
  context: Context,
  request: FhirRequest<Operation>,
  job: ExportJob,
): ReturnType<Handler<'operation'>> => {
  const { exports, session, clock } = context
  if (!job.plan.next) return respondWithManifest(context, request, job)
  const early = job.nextPollAt - clock()
  if (early > 0) return { ...failFor('export-polled-early'), headers: formatWait(Math.ceil(early / 1000)) }
  const plan = await continuePlan(context, job.order, job.plan)
  if (isFailure(plan)) return plan
  const isStored = await exports?.jobs.update(job, plan, clock() + EXPORT_POLL_SECONDS * 1000)
  if (!plan.next && isStored) return respondWithManifest(context, request, { ...job, plan })
  const progress = describeProgress(job.order, plan, session.rows.knowsDeletions)
  return { status: 202, headers: { 'x-progress': progress, ...formatWait(EXPORT_POLL_SECONDS) } }
}

function formatWait(seconds: number) {
  return { 'retry-after': String(seconds) }
}

async function respondWithManifest(context: Context, request: FhirRequest<Operation>, job: ExportJob) {
  return {
    status: 200,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      expires: new Date(job.expiresAt).toUTCString(),
    },
    body: JSON.stringify(buildManifest(context, request, job)),
  }
}
