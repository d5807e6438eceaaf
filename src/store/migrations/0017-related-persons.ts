import type { Migration } from '../migrate.ts'

/** The RelatedPersons as which a user acts for patients. */
export const relatedPersons: Migration = {
  name: '0017-related-persons',
  async up(db) {
    await db.schema
      .createTable('account_related_person')
      .addColumn('clinician_id', 'text', column =>
        column.notNull().references('clinician.id').onDelete('cascade'),
      )
      .addColumn('related_person_id', 'text', column => column.notNull())
      .addPrimaryKeyConstraint('account_related_person_key', ['clinician_id', 'related_person_id'])
      .execute()
  },
}
