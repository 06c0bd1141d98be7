use proptest::prelude::*;

use super::*;

fn stated(statement: &str, text: &str, path: &str, header: Option<&str>) -> Vec<String> {
    let found = contradictions(statement, &[CitedText { text, header, path }]);
    found.into_iter().map(|one| one.stated).collect()
}

#[test]
fn values_that_the_lines_state_or_give_in_one_step_are_not_contradicted() {
    for (statement, text) in [
        ("The limit is 2,000 files.", "limit: 2000 files"),
        ("Die Grenze liegt bei 1,5 km.", "The limit is 1500 m."),
        ("It takes three hours.", "Es dauert 3 Stunden."),
        ("Released on 10 June 2023.", "12,Bookworm,2021-08-14,2023-06-10"),
        ("Em 19 de março de 2015.", "19. März 2015"),
        ("The timeout is 365 days.", "max-age=31536000"),
        ("It expires after 12 hours.", "ttl=timedelta(hours=12)"),
        ("They are 51 days apart.", "v7.2.0 (2026-09-16)\nv8.0.0 (2026-11-06)"),
        ("That is about 58 packages each.", "1012 volunteers, 59100 packages"),
        ("It grew by 25 %.", "from 80 units to 100 units"),
        ("Both fees are 12 € together.", "The fees are 5 € and 7 €."),
        ("Since 22.0 (UTF-8, see cron(8)) it has four parts.", "version 22.0. It was 3 before."),
        ("The list has 4 names.", "names = [\"a\", \"b\", \"c\", \"d\"]  # 17 letters at most"),
        ("It is checked every minute.", "checks each minute"),
        ("It starts at 4:30 pm.", "starts at 16:30"),
        ("It has 3 steps.", "It is slow."),
    ] {
        assert_eq!(stated(statement, text, "a.md", None), Vec::<String>::new(), "{statement} / {text}");
    }
}

#[test]
fn other_values_of_the_same_kind_are_contradicted() {
    for (statement, text, expected) in [
        ("The clock changed by less than 2 hours.", "less than 3 hours", "2 hours"),
        ("It is kept for 15 weeks.", "kept for 15 days", "15 weeks"),
        ("It is given in milliseconds.", "specified in seconds", "milliseconds"),
        ("It runs once a year.", "# Run monthly", "year"),
        ("Released on 10 July 2023.", "2023-06-10", "10 July 2023"),
        ("It was founded in 1991.", "Es wurde 1993 gegründet.", "1991"),
        ("Removed in version 23.9.0.", "removed in version 23.7.0", "23.9.0"),
        ("It is a four-way merge.", "will perform a three-way merge", "four"),
        ("The default is 5.", "The default is 4.", "5"),
        ("They are 1035 days apart.", "2002-07-19 and 2005-06-06", "1035 days"),
        ("About 51900 packages exist.", "59100 packages", "51900"),
    ] {
        assert_eq!(stated(statement, text, "a.md", None), [expected], "{statement} / {text}");
    }
}

#[test]
fn fields_of_a_table_are_read_one_by_one() {
    let row = "AAPL,Mar 1 2010,223.02,7";
    let header = Some("symbol,date,price,height_m");
    assert_eq!(stated("On 1 March 2010 AAPL was at 223.02.", row, "a.csv", header), Vec::<String>::new());
    assert_eq!(stated("The height is 700 cm.", row, "a.csv", header), Vec::<String>::new());
    assert_eq!(stated("The height is 8 m.", row, "a.csv", header), ["8 m"]);
    assert_eq!(stated("The price is 232.02.", row, "a.csv", header), ["232.02"]);
}

proptest! {
    #[test]
    fn notations_of_one_number_agree_and_other_numbers_do_not(number in 10_000_u32..999_999) {
        let (thousands, rest) = (number / 1000, number % 1000);
        let text = format!("There are {number} entries.");
        for mark in [",", ".", " ", "\u{202f}", "'"] {
            let same = format!("It has {thousands}{mark}{rest:03} entries.");
            prop_assert_eq!(stated(&same, &text, "a.md", None), Vec::<String>::new());
            let other = format!("It has {thousands}{mark}{:03} entries.", (rest + 7) % 1000);
            prop_assert_eq!(stated(&other, &text, "a.md", None).len(), 1);
        }
    }

    #[test]
    fn any_text_can_be_compared(statement in "[\\PC0-9.,: -]{0,60}", text in "[\\PC0-9.,:\n -]{0,120}") {
        let _ = stated(&statement, &text, "a.csv", None);
        let same = stated(&text, &text, "a.md", None);
        prop_assert_eq!(same, Vec::<String>::new());
    }
}
