/** What the document of this service shows as a refusal of UBL: a guest's invoice, which names no buyer to send it to. */

const ofIssue = [
  { rule: "BR-02", term: "BT-1", path: "number", message: "Expected an invoice number" },
  { rule: "BR-03", term: "BT-2", path: "issue_date", message: "Expected an issue date" },
];
const ofBuyer = [
  { rule: "BR-07", term: "BT-44", path: "buyer.name", message: "Expected the buyer's name" },
  { rule: "BR-10", term: "BG-8", path: "buyer.address_line1", message: "Expected the buyer's postal address" },
  { rule: "BR-11", term: "BT-55", path: "buyer.country", message: "Expected the country of the buyer's address" },
  {
    rule: "PEPPOL-EN16931-R003",
    term: "BT-10",
    path: "buyer_reference",
    message: "Expected a buyer reference or an order reference",
  },
  {
    rule: "PEPPOL-EN16931-R010",
    term: "BT-49",
    path: "buyer.electronic_address",
    message: "Expected the buyer's electronic address",
  },
  {
    rule: "PEPPOL-EN16931-CL008",
    term: "BT-34-1",
    path: "seller.electronic_address_scheme",
    message: "Expected a scheme that Peppol routes, for example 0088",
  },
];

export const notIssued = [...ofIssue, ...ofBuyer];
export const withoutBuyer = ofBuyer;
