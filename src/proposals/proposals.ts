import { randomUUID } from 'node:crypto'
import type { Kysely, Selectable } from 'kysely'
import { fail } from '../core/index.ts'
import type { Schema, Sealer } from '../store/index.ts'
import { LISTED, OPEN_OF_CLIENT, OPEN_OF_GRANT, OPEN_OF_USER } from './limits.ts'
import type {
  Proposal,
  ProposalOutcome,
  ProposalState,
  ProposedChange,
  Proposer,
  TooManyProposals,
} from './proposal.ts'

type Db = Kysely<Schema>

/** The proposals in a database, or in a transaction on it. */
export interface Proposals {
  /** Refuses more than a grant, an assistant or a person may have open. */
  add(
    db: Db,
    change: ProposedChange,
    proposer: Proposer,
    times: { readonly now: number; readonly expiresAt: number },
  ): Promise<string | TooManyProposals>
  /** Whether the grant, the assistant and the person may have one more. */
  findExcess(db: Db, proposer: Proposer, now: number): Promise<TooManyProposals | undefined>
  /** Those of an assistant for a person and a patient, newest first. */
  listOfAssistant(db: Db, proposer: Proposer, now: number): Promise<readonly Proposal[]>
  /** Those to a person, newest first: all open ones, and some that are not. */
  listOfUser(db: Db, userId: string, now: number, limit: number): Promise<readonly Proposal[]>
  countOpen(db: Db, userId: string, now: number): Promise<number>
  /** Only of this person. */
  find(db: Db, id: string, userId: string, now: number): Promise<Proposal | undefined>
  /** Changes the state, if it still is one of these. False if somebody else was first. */
  change(db: Db, id: string, to: ProposalChange): Promise<boolean>
}

export interface ProposalChange {
  readonly from: ProposalState
  readonly to: ProposalState
  readonly now: number
  /** The present outcome stays if undefined. */
  readonly outcome?: ProposalOutcome
}

export function createProposals(sealer: Sealer): Proposals {
  const cell = (row: string, column: 'change_sealed' | 'outcome_sealed') =>
    ({ table: 'proposal', column, row }) as const

  function open(row: Selectable<Schema['proposal']>, now: number): Proposal {
    const outcome = row.outcome_sealed
    return {
      id: row.id,
      userId: row.clinician_id,
      clientId: row.client_id,
      grantId: row.grant_id,
      patient: row.patient_id ?? undefined,
      change: JSON.parse(sealer.open(row.change_sealed, cell(row.id, 'change_sealed'))),
      state: row.state === 'open' && row.expires_at <= now ? 'expired' : row.state,
      createdAt: row.created_at,
      expiresAt: row.expires_at,
      decidedAt: row.decided_at ?? undefined,
      outcome: outcome === null ? {} : JSON.parse(sealer.open(outcome, cell(row.id, 'outcome_sealed'))),
    }
  }

  async function findExcess(db: Db, { userId, clientId, grantId }: Proposer, now: number) {
    const rows = await selectOpen(db, userId, now)
      .select(['client_id', 'grant_id'])
      .limit(OPEN_OF_USER)
      .execute()
    const ofClient = rows.filter(row => row.client_id === clientId)
    const ofGrant = ofClient.filter(row => row.grant_id === grantId)
    if (ofGrant.length >= OPEN_OF_GRANT) return failTooMany(OPEN_OF_GRANT)
    if (ofClient.length >= OPEN_OF_CLIENT) return failTooMany(OPEN_OF_CLIENT)
    return rows.length >= OPEN_OF_USER ? failTooMany(OPEN_OF_USER) : undefined
  }

  return {
    findExcess,
    async add(db, change, proposer, { now, expiresAt }) {
      const excess = await findExcess(db, proposer, now)
      if (excess) return excess
      const id = randomUUID()
      await db
        .insertInto('proposal')
        .values({
          id,
          clinician_id: proposer.userId,
          client_id: proposer.clientId,
          grant_id: proposer.grantId,
          patient_id: proposer.patient ?? null,
          action: change.action,
          resource_type: change.type,
          state: 'open',
          created_at: now,
          expires_at: expiresAt,
          decided_at: null,
          change_sealed: sealer.seal(JSON.stringify(change), cell(id, 'change_sealed')),
          outcome_sealed: null,
        })
        .execute()
      return id
    },
    async listOfAssistant(db, { userId, clientId, patient }, now) {
      const rows = await db
        .selectFrom('proposal')
        .selectAll()
        .where('clinician_id', '=', userId)
        .where('client_id', '=', clientId)
        .where('patient_id', patient === undefined ? 'is' : '=', patient ?? null)
        .orderBy('created_at', 'desc')
        .orderBy('id')
        .limit(LISTED)
        .execute()
      return rows.map(row => open(row, now))
    },
    async listOfUser(db, userId, now, limit) {
      const pages = [
        selectOpen(db, userId, now).limit(OPEN_OF_USER),
        db
          .selectFrom('proposal')
          .where('clinician_id', '=', userId)
          .where(({ or, eb }) => or([eb('state', 'not in', OPEN), eb('expires_at', '<=', now)]))
          .limit(limit),
      ]
      const rows = await Promise.all(
        pages.map(page => page.selectAll().orderBy('created_at', 'desc').orderBy('id').execute()),
      )
      return rows.flat().map(row => open(row, now))
    },
    async countOpen(db, userId, now) {
      const row = await selectOpen(db, userId, now)
        .select(({ fn }) => fn.countAll<number | string>().as('open'))
        .executeTakeFirst()
      return Number(row?.open ?? 0)
    },
    async find(db, id, userId, now) {
      const row = await db
        .selectFrom('proposal')
        .selectAll()
        .where('id', '=', id)
        .where('clinician_id', '=', userId)
        .executeTakeFirst()
      return row && open(row, now)
    },
    async change(db, id, { from, to, now, outcome }) {
      const { numUpdatedRows } = await db
        .updateTable('proposal')
        .set({
          state: to,
          decided_at: now,
          ...(outcome && {
            outcome_sealed: sealer.seal(JSON.stringify(outcome), cell(id, 'outcome_sealed')),
          }),
        })
        .where('id', '=', id)
        .where('state', '=', from)
        .$if(from === 'open' && to !== 'expired', query => query.where('expires_at', '>', now))
        .executeTakeFirst()
      return numUpdatedRows === 1n
    },
  }
}

/** One that is being signed counts, too: it may become open again. */
const OPEN = ['open', 'signing'] as const

function selectOpen(db: Db, userId: string, now: number) {
  return db
    .selectFrom('proposal')
    .where('clinician_id', '=', userId)
    .where('state', 'in', OPEN)
    .where('expires_at', '>', now)
}

function failTooMany(most: number): TooManyProposals {
  return fail({ reason: 'too-many-proposals', most })
}
